/** Items of a history, as the APIs of items have them, as messages. */
import type { Content, ContentPart, Message, ToolCall } from "./conversation.ts";
import { GrowingParts } from "./growing-parts.ts";

type Open = { -readonly [K in keyof Message]: Message[K] } & { toolCalls?: ToolCall[] };

export interface TurnsOptions {
  /** User messages that stand next to each other become one. */
  readonly joinUsers?: boolean;
}

/**
 * Collects the items of a history into messages: neighbouring items of one assistant turn become one message, in which reasoning comes
 * before text and text before calls. Results of calls stand in the order of the calls that they answer.
 */
export class Turns {
  private readonly collected: Open[] = [];
  /** Results that came one after the other, which are put in order once something else comes. */
  private resultsFrom: number | undefined;
  private readonly growing = new GrowingParts();

  constructor(private readonly options: TurnsOptions = {}) {}

  /** All messages so far. */
  get messages(): readonly Message[] {
    this.orderResults();
    return this.collected;
  }

  system(content: Content, role: "system" | "developer" = "system"): void {
    this.add({ role, content });
  }

  user(content: Content): void {
    const last = this.collected.at(-1);
    if (this.options.joinUsers === true && last?.role === "user") last.content = this.joined(last.content, content);
    else this.add({ role: "user", content });
  }

  /** Thoughts of an assistant turn: of a new one behind text or calls. Empty ones are left out. */
  reasoning(text: string): void {
    if (text === "") return;
    const last = this.collected.at(-1);
    const goesOn = last?.role === "assistant" && last.toolCalls === undefined && isEmpty(last.content);
    if (!goesOn) this.add({ role: "assistant", content: "", reasoning: text });
    else last.reasoning = last.reasoning === undefined ? text : `${last.reasoning}\n\n${text}`;
  }

  /** Text of an assistant turn: of a new one behind calls. */
  assistant(content: Content): void {
    const last = this.collected.at(-1);
    if (last?.role !== "assistant" || last.toolCalls !== undefined) this.add({ role: "assistant", content });
    else last.content = isEmpty(last.content) ? content : this.joined(last.content, content);
  }

  call(call: ToolCall): void {
    const last = this.collected.at(-1);
    if (last?.role !== "assistant")
      this.add({ role: "assistant", content: "", withoutContent: true, toolCalls: [call] });
    else if (last.toolCalls !== undefined) last.toolCalls.push(call);
    else {
      last.toolCalls = [call];
      if (isEmpty(last.content)) last.withoutContent = true;
    }
  }

  /** What a call gave; of no call that is known where `callId` is undefined. `name`: that of the tool. */
  result(
    callId: string | undefined,
    content: Content,
    { name, isError }: { readonly name?: string; readonly isError?: true } = {},
  ): void {
    const from = this.resultsFrom;
    this.add({
      role: "tool",
      content,
      ...(callId !== undefined && { toolCallId: callId }),
      ...(name !== undefined && { name }),
      ...(isError && { isError }),
    });
    this.resultsFrom = from ?? this.collected.length - 1;
  }

  private add(message: Open): void {
    if (message.role !== "tool") this.orderResults();
    this.collected.push(message);
  }

  /** Templates may number results and calls alike. A result of an unknown call stays behind those of known ones. */
  private orderResults(): void {
    const from = this.resultsFrom;
    this.resultsFrom = undefined;
    if (from === undefined || this.collected.length - from < 2) return;
    const calls = this.collected[from - 1]?.toolCalls ?? [];
    const places = new Map<string, number>();
    for (const [at, { id }] of calls.entries()) if (!places.has(id)) places.set(id, at);
    const place = ({ toolCallId }: Message): number =>
      (toolCallId === undefined ? undefined : places.get(toolCallId)) ?? calls.length;
    const results = this.collected.slice(from).map((message) => ({ message, at: place(message) }));
    if (results.every(({ at }, i) => i === 0 || results[i - 1]!.at <= at)) return;
    results.sort((a, b) => a.at - b.at);
    for (const [i, { message }] of results.entries()) this.collected[from + i] = message;
  }

  /** One content out of two: its parts are those of both. */
  private joined(a: Content, b: Content): Content {
    return this.growing.with(a === "" ? [] : a, parts(b));
  }
}

const isEmpty = (content: Content): boolean => content.length === 0;

const parts = (content: Content): readonly ContentPart[] =>
  typeof content !== "string" ? content : content === "" ? [] : [{ type: "text", text: content }];
