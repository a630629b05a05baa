import type { ParserSink } from "./events.ts";
import { type ContentFilter, FilteredText } from "./filter.ts";
import { SpecialMarkers } from "./markers.ts";
import { reasoningFamily, toolFamily } from "./names.ts";
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

class Chain implements OutputParser {
  readonly markers: readonly string[];
  private readonly marks: SpecialMarkers;
  private readonly first: Machine | undefined;
  private readonly second: Machine | undefined;
  private readonly filtered: FilteredText | undefined;
  private readonly filter: ContentFilter | undefined;
  private sink!: ParserSink;
  /** Half a character at the end of what came. */
  private half = "";

  constructor(reasoning: string | undefined, tool: string | undefined, options: ParserOptions) {
    const thoughts = reasoningFamily(reasoning);
    const calls = toolFamily(tool);
    this.filter = options.filter;
    this.markers = [
      ...new Set([...(thoughts === undefined ? [] : reasoningMarkers(thoughts)), ...(calls?.markers ?? [])]),
    ];
    this.marks = new SpecialMarkers(this.markers.filter((marker) => options.singleTokenMarkers.has(marker)));
    const tools = new ToolIndex(options.tools);
    if (calls !== undefined && options.parseTools) {
      this.second = runMachine(new Parsing(this.marks, tools, options), calls.run);
    }
    if (thoughts !== undefined) {
      const program = thinking(thoughts, () => this.second?.busy === true);
      this.first = runMachine(new Parsing(this.marks, tools, { ...options, passesOn: true }), program);
    }
    if (this.filter !== undefined) {
      this.filtered = new FilteredText(this.filter, this.marks, (text) => this.toCalls(text));
    }
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
    const code = this.marks.code(text);
    if (code === undefined) this.push(text, sink);
    else this.read(this.takeHalf() + code, sink);
  }

  finish(sink: ParserSink): void {
    const half = this.takeHalf();
    if (half !== "") this.read(half, sink);
    this.sink = sink;
    if (this.filter?.stopped !== true) this.first?.finish(this.between);
    this.filtered?.end();
    this.second?.finish(sink);
  }

  private read(text: string, sink: ParserSink): void {
    if (this.filter?.stopped === true) return;
    this.sink = sink;
    if (this.first === undefined) this.toFilter(text);
    else this.first.push(text, this.between);
  }

  /** Where reasoning leads to: visible text goes on to the calls. */
  private readonly between: ParserSink = {
    text: (delta) => this.toFilter(delta),
    reasoning: (delta) => {
      if (this.filter?.stopped !== true) this.sink.reasoning(delta);
    },
    toolStart: () => {},
    toolArguments: () => {},
    toolEnd: () => {},
  };

  private toFilter(text: string): void {
    if (this.filtered === undefined) this.toCalls(text);
    else if (this.filter?.stopped !== true) this.filtered.push(text);
  }

  private toCalls(text: string): void {
    if (this.second === undefined) this.sink.text(this.marks.plain(text));
    else this.second.push(text, this.sink);
  }

  private takeHalf(): string {
    const { half } = this;
    this.half = "";
    return half;
  }
}
