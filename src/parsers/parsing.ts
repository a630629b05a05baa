import { Emitter } from "./emitter.ts";
import type { ParserSink } from "./events.ts";
import { Input, type Step, skipSpace, take } from "./input.ts";
import { MarkerSet, type SpecialMarkers } from "./markers.ts";
import type { ToolIndex } from "./tools.ts";

/** What a family may have to know of the request. */
export interface ParsingOptions {
  /** The prompt ends inside an open reasoning block. */
  readonly startsInReasoning: boolean;
  /** Calls are looked for; else their markup is text. */
  readonly parseTools: boolean;
  /** The engine was told a grammar. */
  readonly constrained?: boolean;
  /** Markers of reasoning are given out: openers as reasoning, all others as text. */
  readonly keepsMarkers?: boolean;
  /** Visible text goes on to another parser. */
  readonly passesOn?: boolean;
}

const SPACE_ONLY = /^\s*$/;
/** A marker of any family, and white space. */
const OPENER = /^\s*(?:<[^<>{}\s]{1,64}>|\[[A-Z_]{1,64}\])\s*$/;

/** What every family works with: the text, the way out, the declared tools. */
export class Parsing {
  readonly input = new Input();
  readonly out: Emitter;
  /** Emits visible text; a field, so that it can be passed on as it is. */
  readonly text: (delta: string) => void;
  readonly reasoning: (delta: string) => void;
  readonly arguments: (delta: string) => void;

  constructor(
    readonly special: SpecialMarkers,
    readonly tools: ToolIndex,
    readonly options: ParsingOptions,
  ) {
    this.out = new Emitter(special, options.passesOn === true);
    this.input.plain = (text) => special.plain(text);
    this.text = (delta) => this.out.text(delta);
    this.reasoning = (delta) => this.out.reasoning(delta);
    this.arguments = (delta) => this.out.arguments(delta);
  }

  /** The set of these markers as they come in this parser's input. */
  set(...markers: readonly string[]): MarkerSet {
    return new MarkerSet(markers.map((marker) => this.special.written(marker)));
  }

  /** Begins a call: what was recorded belongs to it. */
  start(name: string, id?: string): void {
    this.input.forget();
    this.out.start(name, id);
  }

  /** What looked like a call is none: it goes out as text, byte for byte. At the end, separators behind calls are dropped. */
  giveBack(): void {
    const { input } = this;
    const isEnd = input.isAtEnd;
    const text = input.recorded();
    if (this.out.afterCall && isEnd && /^[\s,;\]]*$/.test(text)) return;
    this.out.text(text);
  }

  /**
   * Leaves the open call unfinished. Behind a call that broke, what was recorded is text. Where the answer ended in it (true is
   * given then), it is dropped if it is no more than `half` a tag.
   */
  leave(half = SPACE_ONLY): boolean {
    const { input, out } = this;
    const isCut = input.isAtEnd;
    out.leave();
    const text = input.recorded();
    if (!isCut || !half.test(this.special.plain(text))) out.text(text);
    return isCut;
  }

  /** Reads the markers of the set that come next, and white space before them; whether there was one. */
  *skipMarkers(set: MarkerSet): Step<boolean> {
    for (let any = false; ; any = true) {
      this.input.record();
      yield* skipSpace(this.input);
      if ((yield* take(this.input, set)) < 0) {
        this.giveBack();
        return any;
      }
      this.out.dropSpace();
    }
  }
}

/** A parser of one stage: what to do with text. Markers that are single tokens come as their codes. */
export interface Machine {
  push(text: string, sink: ParserSink): void;
  finish(sink: ParserSink): void;
  /** The text so far ends inside a call, or in what may be one. */
  readonly busy: boolean;
  /** What may be a call is a marker so far, and nothing behind it. */
  readonly opens: boolean;
  /** Text is held back that may be the begin of a marker. */
  readonly holds: boolean;
}

/** Runs a family's program. */
export function runMachine(parsing: Parsing, program: (parsing: Parsing) => Step<void>): Machine {
  const { input, out } = parsing;
  const running = program(parsing);
  return {
    push(text, sink) {
      out.sink = sink;
      if (!input.passOn(text)) {
        input.feed(text);
        running.next();
      }
      out.flush();
    },
    finish(sink) {
      out.sink = sink;
      input.ended = true;
      running.next();
      out.flush();
    },
    get busy() {
      // Behind a call separators are recorded, which may as well lead to text.
      return out.inCall || (!out.afterCall && !SPACE_ONLY.test(input.seen));
    },
    get holds() {
      return input.at < input.text.length || !SPACE_ONLY.test(input.seen);
    },
    get opens() {
      return !out.inCall && OPENER.test(parsing.special.plain(input.seen));
    },
  };
}
