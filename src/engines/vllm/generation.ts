/** One Generate call of the vLLM dialect: how it counts, repeats and ends. */
import type { Channel, StreamCall } from "../channel.ts";
import {
  type ChoiceFinish,
  EngineError,
  type EngineFinishReason,
  type GenerateCall,
  type GenerateHandler,
  type GenerateRequest,
} from "../engine.ts";
import { toEngineError } from "../engine-error.ts";
import type { GrpcError } from "../grpc-error.ts";
import { bestRows, type GenerateResponseDecoder } from "./decode.ts";
import { encodeGenerateRequest } from "./encode.ts";

export const GENERATE_PATH = "/vllm.grpc.engine.VllmEngine/Generate";

/** Reasons as the engine spells them. "repetition" is its own stop on endless repetition; unknown ones are failures. */
const REASONS: Readonly<Record<string, EngineFinishReason>> = {
  "": "stop",
  stop: "stop",
  repetition: "stop",
  length: "length",
  abort: "abort",
};

/**
 * Below this temperature the engine is greedy, and refuses several samples. They would all be the same, so one is asked for and
 * given out as each choice.
 */
const GREEDY_BELOW = 1e-5;

/**
 * Starts a generation. `decoder` may be shared by all generations of a thread. `abortAtEngine` is called when the generation is
 * cancelled here before it ended: the second belt, for proxies that swallow the reset of a stream.
 */
export function startGeneration(
  channel: Channel,
  decoder: GenerateResponseDecoder,
  request: GenerateRequest,
  handler: GenerateHandler,
  abortAtEngine: () => void,
): GenerateCall {
  const n = Math.max(1, request.sampling.n ?? 1);
  const { temperature } = request.sampling;
  const copied = n > 1 && temperature !== undefined && temperature < GREEDY_BELOW;
  const generation = new VllmGeneration(decoder, request, handler, copied ? 1 : n, copied ? n : 1);
  const stream = channel.serverStream(
    GENERATE_PATH,
    encodeGenerateRequest(copied ? { ...request, sampling: { ...request.sampling, n: 1 } } : request),
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

class VllmGeneration {
  ended = false;
  cancelled = false;
  private stream: StreamCall | undefined;
  private broken: unknown;
  private readonly streaming: boolean;
  private readonly outputRows: number;
  private readonly promptRows: number;
  private readonly finished: boolean[];
  /** Tokens per choice so far: the engine's own counts are per message. */
  private readonly tokens: number[];
  private open: number;

  constructor(
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
    this.outputRows = request.sampling.logprobs ?? 0;
    this.promptRows = request.sampling.promptLogprobs ?? 0;
    this.finished = new Array<boolean>(choices).fill(false);
    this.tokens = new Array<number>(choices).fill(0);
  }

  attach(stream: StreamCall): void {
    this.stream = stream;
  }

  onMessage(bytes: Uint8Array, start: number, end: number): void {
    if (this.broken !== undefined) return;
    const { decoder } = this;
    try {
      const kind = decoder.decode(bytes, start, end);
      if (kind === "unknown") return;
      const { index } = decoder.chunk;
      if (index >= this.choices) throw new EngineError("failed", `the engine sent choice ${index} of ${this.choices}`);
      if (this.finished[index]) return;
      if (kind === "chunk") {
        if (this.streaming) this.giveChunk();
      } else {
        // While streaming, a Complete repeats the last chunk; otherwise it is the only message that brings tokens.
        if (!this.streaming || this.tokens[index] === 0) this.giveChunk();
        this.giveFinish();
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

  private giveChunk(): void {
    const { chunk } = this.decoder;
    if (chunk.count === 0 && chunk.outputLogprobs === undefined && chunk.promptLogprobs === undefined) return;
    this.tokens[chunk.index]! += chunk.count;
    if (chunk.outputLogprobs !== undefined) chunk.outputLogprobs = bestRows(chunk.outputLogprobs, this.outputRows);
    if (chunk.promptLogprobs !== undefined) chunk.promptLogprobs = bestRows(chunk.promptLogprobs, this.promptRows);
    const first = chunk.index;
    for (let copy = 0; copy < this.copies && !this.ended; copy++) {
      chunk.index = first + copy;
      this.handler.onChunk(chunk);
    }
    chunk.index = first;
  }

  private giveFinish(): void {
    const { chunk, complete } = this.decoder;
    this.finished[chunk.index] = true;
    this.open--;
    // Ended means that the receiver of the last chunk cancelled.
    for (let copy = 0; copy < this.copies && !this.ended; copy++) {
      const finish: ChoiceFinish = {
        index: chunk.index + copy,
        reason: REASONS[complete.finishReason] ?? "error",
        rawReason: complete.finishReason,
        promptTokens: chunk.promptTokens,
        cachedTokens: chunk.cachedTokens,
        completionTokens: this.tokens[chunk.index]!,
        ...(complete.matchedTokenId === undefined ? {} : { matchedTokenId: complete.matchedTokenId }),
        ...(complete.matchedStop === undefined ? {} : { matchedStop: complete.matchedStop }),
      };
      this.handler.onFinish(finish);
    }
  }

  private reason(error: GrpcError | undefined): EngineError | undefined {
    if (this.cancelled) return new EngineError("cancelled", "cancelled");
    if (this.broken !== undefined) return toEngineError(this.broken);
    // Nothing is missing: how the stream was closed afterwards does not matter.
    if (this.open === 0) return undefined;
    if (error === undefined)
      return new EngineError("failed", "the engine ended the stream before the end of the generation");
    const mapped = toEngineError(error);
    return mapped.kind === "cancelled"
      ? new EngineError("failed", "the engine cancelled the request", { cause: error })
      : mapped;
  }
}
