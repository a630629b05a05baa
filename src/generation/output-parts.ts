import type { ParserSink } from "../parsers/events.ts";
import type { OutputPart } from "./events.ts";
import { CustomInput } from "./tools/custom-input.ts";

/** How the calls of an answer are told. */
export interface CallOptions {
  /** The id that clients see. `written`: as the model wrote it, where its family has one. */
  readonly callId: (written: string | undefined) => string;
  /** Only the first call counts (`parallel_tool_calls: false`). */
  readonly single: boolean;
  /** Names of the tools that take free text. */
  readonly customTools: ReadonlySet<string>;
  /** Calls are looked for. White space alone before them is no text then, as models write it behind their reasoning. */
  readonly mayCall: boolean;
  /** Reasoning is told as text. */
  readonly mergesReasoning: boolean;
}

const SPACE_ONLY = /^[ \n\r\t]*$/;

/** Collects what a parser says until it is given out, and counts. */
export class OutputParts implements ParserSink {
  /** Calls that are complete. */
  complete = 0;
  /** Tokens whose text was reasoning. */
  reasoningTokens = 0;
  /** Tokens of which nothing has come out yet. */
  private pending = 0;
  private parts: OutputPart[] = [];
  /** What has come, where that is text only; then `parts` is empty. */
  private textOnly = "";
  /** Text at the end of `parts` that more may follow. */
  private last: { readonly type: "text" | "reasoning"; text: string } | undefined;
  /** The free text of the call that is open, where its tool takes one. */
  private custom: { readonly call: number; readonly input: CustomInput } | undefined;

  /** Of the calls so far. */
  private readonly ids = new Set<string>();
  /** White space that came before all text and calls; undefined: it is no longer waited for them. */
  private space: string | undefined;

  constructor(private readonly options: CallOptions) {
    this.space = options.mayCall ? "" : undefined;
  }

  /** Another token is on its way through the parser. */
  token(): void {
    this.pending++;
  }

  text(delta: string): void {
    this.pending = 0;
    if (this.satisfied) return;
    if (this.space === undefined) this.append("text", delta);
    else if (SPACE_ONLY.test(delta)) this.space += delta;
    else this.append("text", this.takeSpace() + delta);
  }

  reasoning(delta: string): void {
    if (this.satisfied) return;
    this.reasoningTokens += this.pending;
    this.pending = 0;
    if (this.options.mergesReasoning) this.text(delta);
    else this.append("reasoning", delta);
  }

  toolStart(call: number, name: string, id: string | undefined): void {
    if (this.isLeftOut(call)) return;
    this.closeCall();
    this.space = undefined;
    const isCustom = this.options.customTools.has(name);
    this.custom = isCustom ? { call, input: new CustomInput() } : undefined;
    this.add({ type: "tool_start", call, id: this.freshId(id), name, kind: isCustom ? "custom" : "function" });
  }

  toolArguments(call: number, text: string): void {
    if (!this.isLeftOut(call)) this.arguments(call, this.custom?.call === call ? this.custom.input.push(text) : text);
  }

  toolEnd(call: number): void {
    if (this.isLeftOut(call)) return;
    this.closeCall();
    this.complete++;
    this.add({ type: "tool_end", call });
  }

  /** No more comes. */
  finish(): void {
    this.closeCall();
    this.append("text", this.takeSpace());
  }

  /** Results are matched to calls by id: what a model writes twice counts once. */
  private freshId(written: string | undefined): string {
    const own = this.options.callId(written);
    const id = this.ids.has(own) ? this.options.callId(undefined) : own;
    this.ids.add(id);
    return id;
  }

  private takeSpace(): string {
    const space = this.space ?? "";
    this.space = undefined;
    return space;
  }

  private closeCall(): void {
    const { custom } = this;
    this.custom = undefined;
    if (custom !== undefined) this.arguments(custom.call, custom.input.end());
  }

  /** No further call is wanted, and nothing behind the one that came, wherever the pieces of an answer end. */
  get satisfied(): boolean {
    return this.options.single && this.complete > 0;
  }

  get isEmpty(): boolean {
    return this.parts.length === 0 && this.textOnly === "";
  }

  /** All that has come is one text. */
  get isText(): boolean {
    return this.textOnly !== "";
  }

  /** The text that has come since the last time, where it is all. */
  takeText(): string {
    const text = this.textOnly;
    this.textOnly = "";
    return text;
  }

  /** What has come since the last time. */
  take(): readonly OutputPart[] {
    this.settle();
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
    if (type === "text" && this.parts.length === 0) {
      this.textOnly += text;
      return;
    }
    this.settle();
    if (this.last?.type === type) this.last.text += text;
    else {
      this.last = { type, text };
      this.parts.push(this.last);
    }
  }

  private arguments(call: number, text: string): void {
    if (text !== "") this.add({ type: "tool_arguments", call, text });
  }

  /** Text that something else comes behind. */
  private settle(): void {
    if (this.textOnly === "") return;
    this.last = { type: "text", text: this.takeText() };
    this.parts.push(this.last);
  }

  private add(part: OutputPart): void {
    this.settle();
    this.last = undefined;
    this.parts.push(part);
  }
}
