/** An answer as the events of Anthropic's stream. */
import type { GatewayError } from "../../errors.ts";
import { errorBody } from "../errors.ts";
import type { FrameWriter, StreamSink } from "../shared/answer.ts";
import { newId } from "../shared/ids.ts";
import { type TurnEnd, type TurnItem, type TurnListener, turnSink } from "../shared/turn.ts";
import { deltaUsage, type MessageAnswer, messageText, messageUsage, openBlock, stopOf } from "./answer.ts";

const frame = (type: string, fields: string): string => `event: ${type}\ndata: {"type":"${type}"${fields}}\n\n`;

/** Also what is sent in silence. */
export const PING = frame("ping", "");

export interface MessageStreamOptions {
  readonly isClamped: boolean;
  /** The client did not ask to see how the model thinks. */
  readonly hidesThinking: boolean;
  /** Of the request, for errors. */
  readonly requestId: string;
}

/**
 * A sink that writes the events: `message_start`, the blocks, one after the other, each with `content_block_start`, its deltas and
 * `content_block_stop`, then `message_delta` and `message_stop`. An error is an event of its own, and nothing follows it: blocks that are
 * open then stay so, so that no client takes half a call for a whole one. `first`: see `streamAnswer`.
 */
export function messageStream(
  answer: MessageAnswer,
  out: FrameWriter,
  first: () => void,
  { isClamped, hidesThinking, requestId }: MessageStreamOptions,
): StreamSink {
  const writer = new MessageWriter(answer, out, first, requestId);
  const { begun, emit, flush } = turnSink(writer, { isClamped, dropsReasoning: hidesThinking });
  return {
    ...(begun && { begun }),
    emit,
    flush,
    commit: () => writer.start(answer.promptTokens, 0),
    get started() {
      return writer.started;
    },
    get finished() {
      return writer.finished;
    },
    get error() {
      return writer.error;
    },
  };
}

class MessageWriter implements TurnListener {
  started = false;
  finished = false;
  error: GatewayError | undefined;
  private calls = 0;
  /** What comes before and behind the text of a delta of the open block; undefined: none are shown. */
  private head: string | undefined;
  /** `content_block_stop` of a block that was cut: it is sent unless an error follows. */
  private stop = "";

  constructor(
    private readonly answer: MessageAnswer,
    private readonly out: FrameWriter,
    private readonly first: () => void,
    private readonly requestId: string,
  ) {}

  /** The counts that it begins with may be ours alone; `message_delta` has the engine's. */
  start(promptTokens: number, cachedTokens: number): void {
    if (this.started) return;
    this.started = true;
    const message = messageText(this.answer, [], undefined, messageUsage(promptTokens, cachedTokens));
    this.out.write(frame("message_start", `,"message":${message}`) + PING);
  }

  begun({ promptTokens, cachedTokens }: { readonly promptTokens: number; readonly cachedTokens: number }): void {
    this.start(promptTokens, cachedTokens);
    this.first();
  }

  opened(item: TurnItem): void {
    const { at } = item;
    const block = openBlock(item, item.kind === "call" ? newId("toolu_") : "");
    this.out.write(`${this.stop}${frame("content_block_start", `,"index":${at},"content_block":${block}`)}`);
    this.stop = "";
    const [type, field] = DELTAS[item.kind];
    const isShown = item.kind !== "reasoning" || !this.answer.omitsThinking;
    this.head = isShown ? `${deltaHead(at)}{"type":"${type}","${field}":` : undefined;
  }

  delta(_item: TurnItem, text: string): void {
    if (this.head !== undefined && text !== "") this.out.write(`${this.head}${JSON.stringify(text)}}}\n\n`);
  }

  closed(item: TurnItem, complete: boolean): void {
    const { at, kind } = item;
    let end = frame("content_block_stop", `,"index":${at}`);
    if (kind === "reasoning") {
      const signature = JSON.stringify(this.answer.sign(item.text));
      end = `${deltaHead(at)}{"type":"signature_delta","signature":${signature}}}\n\n${end}`;
    } else if (kind === "call" && complete) this.calls++;
    if (complete) this.out.write(end);
    else this.stop = end;
  }

  ended(end: TurnEnd): void {
    this.finished = true;
    const { reason, sequence } = stopOf(end, this.calls);
    const delta = { stop_reason: reason, stop_sequence: sequence, stop_details: null, container: null };
    const edits = this.answer.tellsEdits ? `,"context_management":{"applied_edits":[]}` : "";
    const fields = `,"delta":${JSON.stringify(delta)},"usage":${JSON.stringify(deltaUsage(end))}${edits}`;
    this.out.write(this.stop + frame("message_delta", fields) + frame("message_stop", ""));
    this.out.end();
  }

  failed(error: GatewayError): void {
    this.error = error;
    this.finished = true;
    if (error.status === 499) this.out.cut();
    else if (this.started) {
      this.out.write(`event: error\ndata: ${JSON.stringify(errorBody("anthropic", error, this.requestId))}\n\n`);
      this.out.end();
    }
    this.first();
  }

  flush(): void {
    this.out.flush();
  }
}

const DELTAS = {
  text: ["text_delta", "text"],
  reasoning: ["thinking_delta", "thinking"],
  call: ["input_json_delta", "partial_json"],
} as const;

/** A delta up to its `delta` member. */
const deltaHead = (at: number): string =>
  `event: content_block_delta\ndata: {"type":"content_block_delta","index":${at},"delta":`;
