/** One Embed call of the vLLM dialect (`proto/vllm_engine.proto`). */
import { WireReader } from "../../protobuf/reader.ts";
import { WireWriter } from "../../protobuf/writer.ts";
import type { Channel } from "../channel.ts";
import { type EmbedReply, type EmbedRequest, EngineError } from "../engine.ts";
import { toEngineError } from "../engine-error.ts";

export const EMBED_PATH = "/vllm.grpc.engine.VllmEngine/Embed";

const NO_NUMBERS = new Float32Array(0);

// One message is coded at a time.
const head = new WireWriter();
const tokenized = new WireWriter();
const reader = new WireReader();

/** EmbedRequest: the ids alone, without the text that they came from. */
export function encodeEmbedRequest({ requestId, tokenIds }: EmbedRequest): Uint8Array {
  tokenized.reset().packedUint32(2, tokenIds);
  head.reset().string(1, requestId);
  head.message(2, tokenized.written());
  return head.written().slice();
}

/** EmbedResponse. Throws EngineError "failed" for a vector that is none, WireError for bytes that are no EmbedResponse. */
export function decodeEmbedResponse(bytes: Uint8Array): EmbedReply {
  let embedding: Float32Array = NO_NUMBERS;
  let promptTokens = 0;
  let told = 0;
  reader.reset(bytes);
  while (reader.at < reader.end) {
    const tag = reader.varint();
    const field = tag >>> 3;
    if (field === 1) embedding = reader.float32Array(embedding, tag & 7);
    else if (field === 2) promptTokens = reader.varint();
    else if (field === 3) told = reader.varint();
    else reader.skip(tag & 7);
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
  request: EmbedRequest,
  signal: AbortSignal,
  abortAtEngine: () => void,
): Promise<EmbedReply> {
  signal.addEventListener("abort", abortAtEngine, { once: true });
  try {
    return decodeEmbedResponse(await channel.unary(EMBED_PATH, encodeEmbedRequest(request), { signal }));
  } catch (error) {
    throw toEngineError(error);
  } finally {
    signal.removeEventListener("abort", abortAtEngine);
  }
}
