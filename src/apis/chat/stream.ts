import type { GatewayError } from "../../errors.ts";
import type { CallKind, GenerationEvent, OutputPart } from "../../generation/events.ts";
import { failStream, flat, frameHead, frameTail, quoted, stopFields, usageTail } from "../openai/answer.ts";
import { chatLogprobs } from "../openai/logprobs.ts";
import { usage } from "../openai/usage.ts";
import type { FrameWriter, StreamSink } from "../shared/answer.ts";
import { type ChatAnswer, finishReason, reasoningFields, toolCallFields } from "./answer.ts";

const textTail = (includeUsage: boolean): string =>
  flat(`},"logprobs":null,"finish_reason":null}${frameTail({ includeUsage })}`);
const TEXT_TAIL = textTail(false);
const TEXT_TAIL_USAGE = textTail(true);

/**
 * Turns the events of a generation into `chat.completion.chunk` frames: a role chunk per choice, the parts of its output, a chunk
 * with its finish reason; then the usage, where asked for, and `[DONE]`. An error is a frame of its own, and no `[DONE]` follows it.
 */
export class ChatStream implements StreamSink {
  /** Set when the first event came: the answer can no longer be another status. */
  started = false;
  error: GatewayError | undefined;
  /** The last event came: nothing is left to be cancelled. */
  finished = false;
  private readonly head: string;
  private firstTold = false;
  private readonly opened: boolean[] = [];
  /** Per choice: it has begun, but has shown nothing yet. */
  private readonly isBare: boolean[] = [];
  private readonly tokens: number[] = [];
  private readonly plainTail: string;
  /** Most chunks hold text only. Per choice: what comes before it, as one string, so that a chunk costs two joins. */
  private readonly textHeads: string[] = [];
  private readonly textTail: string;
  private readonly textOnly: boolean;
  /** Per choice, its calls that take free text. */
  private readonly customCalls: Set<number>[] = [];

  /** @param onFirst the first event is there (text, or the error that came instead of it) */
  constructor(
    private readonly answer: ChatAnswer,
    private readonly out: FrameWriter,
    private readonly onFirst: () => void,
  ) {
    this.head = frameHead("chat.completion.chunk", answer);
    this.plainTail = frameTail(answer);
    this.textTail = answer.includeUsage ? TEXT_TAIL_USAGE : TEXT_TAIL;
    this.textOnly = !answer.logprobs && !answer.continuousUsage && answer.promptTokenIds === undefined;
  }

  emit(event: GenerationEvent): void {
    if (event.type === "output") this.output(event);
    else if (event.type === "finish") {
      this.begin(event.index, '""');
      if (this.isBare[event.index] === true) this.part(event.index, { type: "text", text: "" });
      const stop = JSON.stringify(stopFields(event.matchedStop)).slice(1, -1);
      this.frame(
        event.index,
        `"delta":{},"logprobs":null,"finish_reason":"${finishReason(this.answer, event.reason)}"${stop === "" ? "" : `,${stop}`}`,
      );
    } else if (event.type === "usage") {
      this.first();
      this.finished = true;
      if (this.answer.includeUsage) {
        this.out.write(`${this.head}],"usage":${JSON.stringify(usage(event))}}\n\n`);
      }
      this.out.write("data: [DONE]\n\n");
      this.out.end();
    } else this.fail(event.error);
  }

  emitText(index: number, text: string): void {
    // anything but the first of a choice, which is preceded by its role
    if (this.textOnly && this.isBare[index] === false) this.textFrame(index, text);
    else
      this.output({ type: "output", index, parts: [{ type: "text", text }], tokenIds: undefined, logprobs: undefined });
  }

  flush(): void {
    this.out.flush();
  }

  /** The status line goes out before the first event: from now on failures are frames. */
  commit(): void {
    this.started = true;
  }

  private output(event: GenerationEvent & { type: "output" }): void {
    const parts = this.answer.parsed ? event.parts.filter((part) => this.isShown(part)) : event.parts;
    // as OpenAI: no content where an answer begins with something else
    const beginsWith = parts[0]?.type ?? (this.answer.parsed ? undefined : "text");
    this.begin(event.index, beginsWith === "text" ? '""' : "null");
    if (this.isBare[event.index] !== false) this.isBare[event.index] = beginsWith === undefined;
    if (this.textOnly) {
      for (const part of parts) this.part(event.index, part);
      return;
    }
    const { answer } = this;
    if (answer.continuousUsage)
      this.tokens[event.index] = (this.tokens[event.index] ?? 0) + (event.tokenIds?.length ?? 0);
    const showsIds = answer.promptTokenIds !== undefined && event.tokenIds !== undefined;
    if (parts.length === 0 && event.logprobs === undefined && !showsIds) return;
    const logprobs = event.logprobs
      ? JSON.stringify({ content: chatLogprobs(event.logprobs, answer.tokenizer, answer.tokensAsIds), refusal: null })
      : "null";
    const ids = showsIds ? `,"token_ids":${JSON.stringify(event.tokenIds)}` : "";
    // Logprobs and ids are of all parts together; they go with the first one.
    const [first, ...rest] = parts;
    const nothing = answer.parsed ? "{}" : `{"content":""}`;
    const delta = first === undefined ? nothing : this.delta(event.index, first);
    this.frame(event.index, `"delta":${delta},"logprobs":${logprobs},"finish_reason":null${ids}`);
    for (const part of rest) this.part(event.index, part);
  }

  /** A chunk with nothing but a part of the output. */
  private part(index: number, part: OutputPart): void {
    if (this.textOnly && part.type === "text") this.textFrame(index, part.text);
    else this.frame(index, `"delta":${this.delta(index, part)},"logprobs":null,"finish_reason":null`);
  }

  private textFrame(index: number, text: string): void {
    this.out.write(this.textHeads[index]! + quoted(text) + this.textTail);
  }

  private isShown({ type }: OutputPart): boolean {
    return type !== "tool_end" && (type !== "reasoning" || this.answer.reasoningFields.length > 0);
  }

  private delta(index: number, part: OutputPart): string {
    switch (part.type) {
      case "text":
        return `{"content":${JSON.stringify(part.text)}}`;
      case "reasoning":
        return JSON.stringify(reasoningFields(this.answer, part.text));
      case "tool_start": {
        const { call, id, name, kind } = part;
        if (this.answer.legacyCalls) return JSON.stringify({ function_call: { name, arguments: "" } });
        if (kind === "custom") this.customCallsOf(index).add(call);
        return JSON.stringify({ tool_calls: [{ index: call, id, type: kind, ...toolCallFields(kind, "", name) }] });
      }
      case "tool_arguments": {
        const { call, text } = part;
        if (this.answer.legacyCalls) return JSON.stringify({ function_call: { arguments: text } });
        const kind: CallKind = this.customCalls[index]?.has(call) === true ? "custom" : "function";
        return JSON.stringify({ tool_calls: [{ index: call, ...toolCallFields(kind, text) }] });
      }
      case "tool_end":
        return "{}";
    }
  }

  private customCallsOf(index: number): Set<number> {
    this.customCalls[index] ??= new Set();
    return this.customCalls[index];
  }

  /** @param content JSON text of the content in the choice's first chunk */
  private begin(index: number, content: string): void {
    if (this.opened[index] === true) return;
    this.first();
    this.opened[index] = true;
    this.textHeads[index] = flat(`${this.head}{"index":${index},"delta":{"content":`);
    const ids =
      index === 0 && this.answer.promptTokenIds
        ? `],"prompt_token_ids":[${Array.from(this.answer.promptTokenIds).join(",")}`
        : "";
    const delta = `"delta":{"role":"assistant","content":${content}},"logprobs":null,"finish_reason":null`;
    this.out.write(`${this.head}{"index":${index},${delta}}${ids}${this.tail()}`);
  }

  private frame(index: number, fields: string): void {
    this.out.write(`${this.head}{"index":${index},${fields}}${this.tail()}`);
  }

  /** What follows the choices in a chunk. */
  private tail(): string {
    return this.answer.continuousUsage ? usageTail(this.answer.promptTokens, this.tokens) : this.plainTail;
  }

  private first(): void {
    this.started = true;
    if (this.firstTold) return;
    this.firstTold = true;
    this.onFirst();
  }

  private fail(error: GatewayError): void {
    this.error = error;
    this.finished = true;
    failStream(this.out, error, this.started);
    this.onFirst();
  }
}
