import type { ParserSink } from "./events.ts";
import { forcedCalls, jsonOrCalls, textOnly } from "./families/forced.ts";
import type { ToolFamily } from "./families/index.ts";
import { type ContentFilter, FilteredText } from "./filter.ts";
import { BARRIER, SpecialMarkers } from "./markers.ts";
import { familiesOf } from "./names.ts";
import { type Machine, Parsing, runMachine } from "./parsing.ts";
import { reasoningMarkers } from "./reasoning/index.ts";
import { thinking } from "./reasoning/thinking.ts";
import { ToolIndex, type ToolSchema } from "./tools.ts";

/** Reads one answer, at any chunking. */
export interface OutputParser {
  /** Ordinary text of the model. */
  push(text: string, sink: ParserSink): void;
  /** The text of one special or added token that is one of `markers`. Any other is read as text. */
  special(text: string, sink: ParserSink): void;
  /** Settles what is held. A call that is not whole stays unfinished. */
  finish(sink: ParserSink): void;
  /** All marker strings, of which the caller tells those that are single tokens of the vocabulary. */
  readonly markers: readonly string[];
}

export interface ParserOptions {
  readonly tools: readonly ToolSchema[];
  /** The prompt ends inside an open reasoning block, or the thinking switch says so. */
  readonly startsInReasoning: boolean;
  /** Markers that come through `special`; text that looks like one is text then. */
  readonly singleTokenMarkers: ReadonlySet<string>;
  /** False for `tool_choice: "none"`: calls are not looked for, their markup stays text. */
  readonly parseTools: boolean;
  /** The engine was told a grammar: an answer without any reasoning marker is the answer. */
  readonly constrained?: boolean;
  /** It was told that the answer is an object of JSON, or calls: markers of calls inside of such an answer are its text. */
  readonly jsonAnswer?: boolean;
  /** Markers between which reasoning stands come out: openers as reasoning, all others as text. Not in formats of channels. */
  readonly keepsMarkers?: boolean;
  /**
   * The engine was made to answer with calls in JSON: with the bare arguments of the call that is named, or, without a name,
   * with one object or a list of objects of name and arguments. An answer in the family's own format is read as ever.
   */
  readonly forcedCalls?: { readonly name: string | undefined };
  /** Stop strings: between reasoning and tool calls. */
  readonly filter?: ContentFilter;
}

/** A parser of reasoning and tool calls by their names; undefined: none. @throws UnknownParserError */
export function createOutputParser(
  reasoning: string | undefined,
  tool: string | undefined,
  options: ParserOptions,
): OutputParser {
  return new Chain(reasoning, tool, options);
}

const isHighSurrogate = (c: number): boolean => c >= 0xd800 && c <= 0xdbff;

function callsProgram({ run, isBare, isUnified }: ToolFamily, options: ParserOptions): ToolFamily["run"] {
  if (options.forcedCalls !== undefined) return forcedCalls(options.forcedCalls.name, run);
  return options.jsonAnswer === true && isBare !== true && isUnified !== true ? jsonOrCalls(run) : run;
}

class Chain implements OutputParser {
  readonly markers: readonly string[];
  private readonly codes: SpecialMarkers;
  private readonly thoughts: Machine | undefined;
  private readonly calls: Machine | undefined;
  /** `calls` reads reasoning as well. */
  private readonly isUnified: boolean;
  private readonly filtered: FilteredText | undefined;
  private readonly filter: ContentFilter | undefined;
  private sink!: ParserSink;
  /** Half a character at the end of what came. */
  private half = "";

  constructor(reasoning: string | undefined, tool: string | undefined, options: ParserOptions) {
    const families = familiesOf(reasoning, tool);
    const { parseTools, startsInReasoning, constrained = false, keepsMarkers = false } = options;
    const calls = families.unified ?? families.tool;
    this.filter = options.filter;
    const thoughts = families.reasoning === undefined ? [] : reasoningMarkers(families.reasoning);
    this.markers = [...new Set([...thoughts, ...(calls?.markers ?? [])])];
    this.codes = new SpecialMarkers(this.markers.filter((marker) => options.singleTokenMarkers.has(marker)));
    const tools = new ToolIndex(options.tools);
    this.isUnified = families.unified !== undefined;
    if (calls !== undefined && (this.isUnified || parseTools)) {
      const own = { startsInReasoning, parseTools: parseTools && tool !== undefined };
      this.calls = runMachine(new Parsing(this.codes, tools, own), callsProgram(calls, options));
    } else if (options.forcedCalls !== undefined && parseTools) {
      const own = { startsInReasoning, parseTools };
      this.calls = runMachine(new Parsing(this.codes, tools, own), forcedCalls(options.forcedCalls.name, textOnly));
    }
    if (families.reasoning !== undefined) {
      const own = { startsInReasoning, constrained, keepsMarkers, parseTools: false, passesOn: true };
      const program = thinking(families.reasoning, () => this.isInCall());
      this.thoughts = runMachine(new Parsing(this.codes, tools, own), program);
    }
    if (this.filter !== undefined)
      this.filtered = new FilteredText(this.filter, this.codes, (text) => this.behind(text));
  }

  push(text: string, sink: ParserSink): void {
    let whole = this.half + text;
    this.half = "";
    if (isHighSurrogate(whole.charCodeAt(whole.length - 1))) {
      this.half = whole.slice(-1);
      whole = whole.slice(0, -1);
    }
    if (whole !== "") this.read(whole, sink);
  }

  special(text: string, sink: ParserSink): void {
    const code = this.codes.code(text);
    if (code === undefined) this.push(text, sink);
    else this.read(this.takeHalf() + code, sink);
  }

  finish(sink: ParserSink): void {
    const half = this.takeHalf();
    if (half !== "") this.read(half, sink);
    this.sink = sink;
    if (!this.stopped) this.thoughts?.finish(this.between);
    if (this.isUnified && !this.stopped) this.calls?.finish(this.outward);
    this.filtered?.end();
    if (!this.isUnified) this.calls?.finish(sink);
  }

  private read(text: string, sink: ParserSink): void {
    if (this.stopped) return;
    this.sink = sink;
    if (this.isUnified) this.calls!.push(text, this.outward);
    else if (this.thoughts === undefined) this.visible(text);
    else this.thoughts.push(text, this.between);
  }

  /** A stop string was found: nothing behind it counts. */
  private get stopped(): boolean {
    return this.filter?.stopped === true;
  }

  /** Visible text on its way to the filter. */
  private visible(text: string): void {
    if (this.filtered === undefined) this.behind(text);
    else if (!this.stopped) this.filtered.push(text);
  }

  /** Visible text behind the filter. */
  private behind(text: string): void {
    if (this.calls === undefined || this.isUnified) this.sink.text(this.codes.plain(text));
    else this.calls.push(text, this.sink);
  }

  /** Whether a marker of reasoning that comes now belongs to a call. Behind an opener alone it does not: that opened none. */
  private isInCall(): boolean {
    if (this.calls?.busy !== true) return false;
    if (!this.calls.opens) return true;
    this.calls.push(BARRIER, this.sink);
    return this.calls.busy;
  }

  private readonly reasoning = (delta: string): void => {
    this.interrupt();
    if (!this.stopped) this.sink.reasoning(delta);
  };

  /** Something else follows the visible text: no stop string and no marker goes on across it, and what was held comes before it. */
  private interrupt(): void {
    if (this.stopped) return;
    this.filtered?.end();
    if (!this.isUnified && this.calls?.busy === false && this.calls.holds) this.calls.push(BARRIER, this.sink);
  }

  /** Where a parser of reasoning alone leads to. */
  private readonly between: ParserSink = {
    text: (delta) => this.visible(delta),
    reasoning: this.reasoning,
    marker: (text) => {
      this.interrupt();
      if (!this.stopped) this.sink.text(text);
    },
    toolStart: () => {},
    toolArguments: () => {},
    toolEnd: () => {},
  };

  /** Where a parser of everything leads to. */
  private readonly outward: ParserSink = {
    text: (delta) => this.visible(delta),
    reasoning: this.reasoning,
    toolStart: (index, name, id) => {
      this.interrupt();
      if (!this.stopped) this.sink.toolStart(index, name, id);
    },
    toolArguments: (index, delta) => {
      if (!this.stopped) this.sink.toolArguments(index, delta);
    },
    toolEnd: (index) => {
      if (!this.stopped) this.sink.toolEnd(index);
    },
  };

  private takeHalf(): string {
    const { half } = this;
    this.half = "";
    return half;
  }
}
