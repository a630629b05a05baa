import type { ParserSink } from "../parsers/events.ts";
import type { OutputPart } from "./events.ts";

/** How the calls of an answer are told. */
export interface CallOptions {
  /** The id that clients see. `written`: as the model wrote it, where its family has one. */
  readonly callId: (written: string | undefined) => string;
  /** Only the first call counts (`parallel_tool_calls: false`). */
  readonly single: boolean;
}

/** Collects what a parser says until it is given out, and counts. */
export class OutputParts implements ParserSink {
  /** Calls that are complete. */
  complete = 0;
  /** Tokens whose text was reasoning. */
  reasoningTokens = 0;
  /** Tokens of which nothing has come out yet. */
  private pending = 0;
  private parts: OutputPart[] = [];
  /** Text at the end of `parts` that more may follow. */
  private last: { readonly type: "text" | "reasoning"; text: string } | undefined;

  constructor(private readonly options: CallOptions) {}

  /** Another token is on its way through the parser. */
  token(): void {
    this.pending++;
  }

  text(delta: string): void {
    this.pending = 0;
    this.append("text", delta);
  }

  reasoning(delta: string): void {
    this.reasoningTokens += this.pending;
    this.pending = 0;
    this.append("reasoning", delta);
  }

  toolStart(call: number, name: string, id: string | undefined): void {
    if (this.isLeftOut(call)) return;
    this.add({ type: "tool_start", call, id: this.options.callId(id), name });
  }

  toolArguments(call: number, text: string): void {
    if (!this.isLeftOut(call)) this.add({ type: "tool_arguments", call, text });
  }

  toolEnd(call: number): void {
    if (this.isLeftOut(call)) return;
    this.complete++;
    this.add({ type: "tool_end", call });
  }

  /** No further call is wanted. */
  get satisfied(): boolean {
    return this.options.single && this.complete > 0;
  }

  get isEmpty(): boolean {
    return this.parts.length === 0;
  }

  /** What has come since the last time. */
  take(): readonly OutputPart[] {
    const { parts } = this;
    this.parts = [];
    this.last = undefined;
    return parts;
  }

  private isLeftOut(call: number): boolean {
    this.pending = 0;
    return this.options.single && call > 0;
  }

  private append(type: "text" | "reasoning", text: string): void {
    if (text === "") return;
    if (this.last?.type === type) this.last.text += text;
    else {
      this.last = { type, text };
      this.parts.push(this.last);
    }
  }

  private add(part: OutputPart): void {
    this.last = undefined;
    this.parts.push(part);
  }
}
