/** One Generate call of any dialect: what is asked, and how that dialect counts, repeats and ends. */
import type { Channel, StreamCall } from "./channel.ts";
import { bestRows, type GenerateResponseDecoder } from "./decode.ts";
import {
  EngineError,
  type GenerateCall,
  type GenerateHandler,
  type GenerateRequest,
  type TokenChunk,
} from "./engine.ts";
import { toEngineError } from "./engine-error.ts";
import type { EngineFacts } from "./facts.ts";
import { featuresOf, fieldsOf } from "./features.ts";
import type { GenerateRules } from "./generate-rules.ts";
import type { GrpcError } from "./grpc-error.ts";

export interface GenerationPeer {
  readonly channel: Channel;
  readonly rules: GenerateRules;
  /** May be shared by all generations of a thread. */
  readonly decoder: GenerateResponseDecoder;
  readonly facts: EngineFacts;
}

/**
 * Starts a generation. `abortAtEngine` is called when it is cancelled here before it ended: the second belt, for proxies that swallow
 * the reset of a stream. What the engine cannot do as asked is refused here ("invalid"), whoever chose the engine.
 */
export function startGeneration(
  { channel, rules, decoder, facts }: GenerationPeer,
  request: GenerateRequest,
  handler: GenerateHandler,
  abortAtEngine: () => void,
): GenerateCall {
  const n = Math.max(1, request.sampling.n ?? 1);
  const { temperature } = request.sampling;
  const copied = n > 1 && temperature !== undefined && temperature < rules.oneSampleBelow;
  const asked: GenerateRequest = copied
    ? { ...request, sampling: { ...request.sampling, n: 1 } }
    : n > 1 && rules.streamsSeveral
      ? { ...request, stream: true }
      : request;
  let bytes: Uint8Array;
  try {
    const lacking = featuresOf(request) & ~facts.features;
    if (lacking !== 0)
      throw new EngineError("invalid", `the engine of this model does not support ${fieldsOf(lacking).join(", ")}`);
    bytes = rules.encode(asked, facts);
  } catch (error) {
    return refused(handler, toEngineError(error));
  }
  const generation = new DialectGeneration(rules, decoder, asked, handler, copied ? 1 : n, copied ? n : 1);
  const stream = channel.serverStream(
    rules.path,
    bytes,
    generation,
    request.metadata === undefined ? {} : { metadata: request.metadata },
  );
  generation.attach(stream);
  return {
    cancel() {
      if (generation.ended) return;
      generation.cancelled = true;
      stream.cancel();
      abortAtEngine();
    },
    pause: () => stream.pause(),
    resume: () => stream.resume(),
  };
}

/** A generation that ends before it was sent; not before the caller has it. */
function refused(handler: GenerateHandler, error: EngineError): GenerateCall {
  let ended = false;
  const end = (reason: EngineError): void => {
    if (ended) return;
    ended = true;
    handler.onEnd(reason);
  };
  queueMicrotask(() => end(error));
  return { cancel: () => end(new EngineError("cancelled", "cancelled")), pause() {}, resume() {} };
}

class DialectGeneration {
  ended = false;
  cancelled = false;
  private stream: StreamCall | undefined;
  private broken: unknown;
  private readonly streaming: boolean;
  /** Rows of alternatives that are wanted; undefined: no logprobs at all. */
  private readonly outputRows: number | undefined;
  private readonly promptRows: number | undefined;
  private promptGiven = false;
  private readonly finished: boolean[];
  /** Tokens given per choice so far. */
  private readonly tokens: number[];
  private open: number;

  constructor(
    private readonly rules: GenerateRules,
    private readonly decoder: GenerateResponseDecoder,
    request: GenerateRequest,
    private readonly handler: GenerateHandler,
    /** Choices on the wire. */
    private readonly choices: number,
    /** How often each is given out; more than 1 only for one choice on the wire. */
    private readonly copies: number,
  ) {
    this.open = choices;
    this.streaming = request.stream;
    this.outputRows = request.sampling.logprobs;
    this.promptRows = request.sampling.promptLogprobs;
    this.finished = new Array<boolean>(choices).fill(false);
    this.tokens = new Array<number>(choices).fill(0);
  }

  attach(stream: StreamCall): void {
    this.stream = stream;
  }

  onMessage(bytes: Uint8Array, start: number, end: number): void {
    if (this.broken !== undefined) return;
    const { decoder } = this;
    const { chunk } = decoder;
    try {
      const kind = decoder.decode(bytes, start, end);
      if (kind === "unknown" || this.open === 0) return;
      const { index } = chunk;
      if (index >= this.choices) throw new EngineError("failed", `the engine sent choice ${index} of ${this.choices}`);
      if (this.finished[index]) return;
      if (kind === "chunk") {
        if (this.streaming) this.giveChunk(chunk);
      } else {
        // While streaming, a Complete repeats tokens; otherwise it is the only message that brings them.
        if (this.streaming && this.tokens[index] !== 0) {
          chunk.count = 0;
          chunk.outputLogprobs = undefined;
        }
        this.giveChunk(chunk);
        this.giveFinish(chunk);
      }
    } catch (error) {
      this.broken = error;
      this.stream?.cancel();
    }
  }

  onIdle(): void {
    this.handler.onIdle();
  }

  onEnd(error?: GrpcError): void {
    this.ended = true;
    this.handler.onEnd(this.reason(error));
  }

  private giveChunk(chunk: TokenChunk): void {
    if (chunk.outputLogprobs !== undefined)
      chunk.outputLogprobs =
        this.outputRows === undefined ? undefined : bestRows(chunk.outputLogprobs, this.outputRows);
    if (chunk.promptLogprobs !== undefined) this.cutPromptLogprobs(chunk);
    if (chunk.count === 0 && chunk.outputLogprobs === undefined && chunk.promptLogprobs === undefined) return;
    this.tokens[chunk.index]! += chunk.count;
    const first = chunk.index;
    for (let copy = 0; copy < this.copies && !this.ended; copy++) {
      chunk.index = first + copy;
      this.handler.onChunk(chunk);
    }
    chunk.index = first;
  }

  /** Some send those of the prompt for each choice and again at its end; once is enough. */
  private cutPromptLogprobs(chunk: TokenChunk): void {
    const told = chunk.promptLogprobs!;
    chunk.promptLogprobs = undefined;
    if (this.promptRows === undefined || this.promptGiven) return;
    this.promptGiven = true;
    const cut = bestRows(told, this.promptRows);
    chunk.promptLogprobs = this.rules.firstPromptLogprobIsNone
      ? {
          tokenIds: cut.tokenIds,
          logprobs: cut.logprobs.map((value, i) => (i === 0 ? null : value)),
          top: cut.top.map((row, i) => (i === 0 ? { tokenIds: [], logprobs: [] } : row)),
        }
      : cut;
  }

  private giveFinish(chunk: TokenChunk): void {
    const { complete } = this.decoder;
    const { index } = chunk;
    this.finished[index] = true;
    this.open--;
    const given = this.tokens[index]!;
    // Ended means that the receiver of the last chunk cancelled.
    for (let copy = 0; copy < this.copies && !this.ended; copy++) {
      this.handler.onFinish({
        index: index + copy,
        reason: this.rules.reasons.get(complete.finishReason) ?? "error",
        rawReason: complete.finishReason,
        promptTokens: chunk.promptTokens,
        cachedTokens: chunk.cachedTokens,
        completionTokens: this.rules.countsMessages ? given : Math.max(given, complete.completionTokens),
        ...(complete.matchedTokenId === undefined ? {} : { matchedTokenId: complete.matchedTokenId }),
        ...(complete.matchedStop === undefined ? {} : { matchedStop: complete.matchedStop }),
        ...(complete.handover === undefined ? {} : { handover: complete.handover }),
      });
    }
  }

  private reason(error: GrpcError | undefined): EngineError | undefined {
    if (this.cancelled) return new EngineError("cancelled", "cancelled");
    if (this.broken !== undefined) return toEngineError(this.broken);
    // Nothing is missing: how the stream was closed afterwards does not matter.
    if (this.open === 0) return undefined;
    if (error === undefined) return new EngineError("failed", this.rules.bareEnd);
    const mapped = toEngineError(error);
    return mapped.kind === "cancelled"
      ? new EngineError("failed", "the engine cancelled the request", { cause: error })
      : mapped;
  }
}
