/** One Embed call, of the dialects that have one. */
import { WireReader } from "../protobuf/reader.ts";
import { WireWriter } from "../protobuf/writer.ts";
import type { Channel } from "./channel.ts";
import { assembleRequest } from "./encode.ts";
import { type EmbedReply, type EmbedRequest, EngineError } from "./engine.ts";
import { toEngineError } from "./engine-error.ts";

/** Field numbers of the EmbedResponse; the requests are alike. */
export interface EmbedRules {
  readonly path: string;
  readonly embedding: number;
  readonly promptTokens: number;
  /** How many numbers the vector has. */
  readonly dimension: number;
}

const NO_NUMBERS = new Float32Array(0);
const NO_BYTES = new Uint8Array(0);

// One message is coded at a time.
const head = new WireWriter();
const reader = new WireReader();

/** EmbedRequest: the ids alone, without the text that they came from. */
export function encodeEmbedRequest({ requestId, tokenIds }: EmbedRequest): Uint8Array {
  head.reset().string(1, requestId);
  return assembleRequest(head.written(), 2, tokenIds, NO_BYTES);
}

/** EmbedResponse. Throws EngineError "failed" for a vector that is none, WireError for bytes that are no EmbedResponse. */
export function decodeEmbedResponse(rules: EmbedRules, bytes: Uint8Array): EmbedReply {
  let embedding: Float32Array = NO_NUMBERS;
  let promptTokens = 0;
  let told = 0;
  reader.reset(bytes);
  while (reader.next()) {
    const { field } = reader;
    if (field === rules.embedding) embedding = reader.float32Array(embedding);
    else if (field === rules.promptTokens) promptTokens = reader.varint();
    else if (field === rules.dimension) told = reader.varint();
    else reader.skip();
  }
  if (embedding.length === 0) throw new EngineError("failed", "the engine gave an empty vector");
  if (told !== 0 && told !== embedding.length)
    throw new EngineError("failed", `the engine gave ${embedding.length} numbers of a vector of ${told}`);
  if (!embedding.every(Number.isFinite))
    throw new EngineError("failed", "the engine gave a vector with numbers that are not finite");
  return { embedding, promptTokens };
}

/**
 * Asks for a vector. When `signal` fires before it is there, the call is cancelled; `abortAtEngine` is the second belt, for proxies that
 * swallow the reset of a stream. Rejects with EngineErrors.
 */
export async function startEmbed(
  channel: Channel,
  rules: EmbedRules,
  request: EmbedRequest,
  signal: AbortSignal,
  abortAtEngine: () => void,
): Promise<EmbedReply> {
  signal.addEventListener("abort", abortAtEngine, { once: true });
  try {
    return decodeEmbedResponse(rules, await channel.unary(rules.path, encodeEmbedRequest(request), { signal }));
  } catch (error) {
    const failure = toEngineError(error);
    if (failure.kind !== "cancelled" || signal.aborted) throw failure;
    throw new EngineError("failed", "the engine cancelled the request", { cause: error });
  } finally {
    signal.removeEventListener("abort", abortAtEngine);
  }
}
