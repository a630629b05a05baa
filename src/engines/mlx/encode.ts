/** GenerateRequest of the MLX dialect, written by hand (`proto/mlx_engine.proto`). */
import { WireWriter } from "../../protobuf/writer.ts";
import { assembleRequest, seed32, stopIdsWithEos, writeLogitBias } from "../encode.ts";
import { EngineError, type GenerateRequest } from "../engine.ts";
import type { EngineFacts } from "../facts.ts";

// One request is encoded at a time, so the scratch buffers are shared.
const head = new WireWriter();
const tail = new WireWriter();

export function encodeGenerateRequest(request: GenerateRequest, facts: EngineFacts): Uint8Array {
  check(request, facts);
  head.reset().text(1, request.requestId);
  const sampling = tail.reset().begin(4);
  writeSampling(tail, request);
  tail.end(sampling);
  if (request.stream) tail.bool(5, true);
  return assembleRequest(head.written(), 2, request.tokenIds, tail.written());
}

/** The engine checks nothing: it never answers an empty prompt, and an id past the vocabulary may end its process. */
function check({ tokenIds, sampling }: GenerateRequest, { vocabSize }: EngineFacts): void {
  const { maxTokens, temperature, stopTokenIds = [], logitBias } = sampling;
  const isOutside = (id: number): boolean => vocabSize > 0 && id >= vocabSize;
  if (tokenIds.length === 0) throw new EngineError("invalid", "the prompt is empty");
  if (tokenIds.some(isOutside))
    throw new EngineError("invalid", "the prompt has a token that is not in the vocabulary");
  if (maxTokens !== undefined && maxTokens < 1) throw new EngineError("invalid", "max_tokens must be at least 1");
  if (temperature !== undefined && temperature < 0)
    throw new EngineError("invalid", "temperature must not be negative");
  if (stopTokenIds.some(isOutside))
    throw new EngineError("invalid", "stop_token_ids has a token that is not in the vocabulary");
  if (logitBias !== undefined && [...logitBias.keys()].some(isOutside))
    throw new EngineError("invalid", "logit_bias has a token that is not in the vocabulary");
}

/** The wire has no stop strings: they stay with the gateway. */
function writeSampling(out: WireWriter, request: GenerateRequest): void {
  const { sampling: params } = request;
  if (params.temperature !== undefined) out.float(1, params.temperature);
  out.float(2, params.topP ?? 1);
  if (params.topK !== undefined && params.topK > 0) out.uint32(3, params.topK);
  if (params.minP) out.float(4, params.minP);
  out.float(5, params.repetitionPenalty ?? 1);
  if (params.frequencyPenalty) out.float(6, params.frequencyPenalty);
  if (params.presencePenalty) out.float(7, params.presencePenalty);
  writeLogitBias(out, 8, params.logitBias, "numbers");
  if (params.maxTokens !== undefined) out.uint32(9, params.maxTokens);
  out.packedUint32(10, stopIdsWithEos(request));
  if (params.ignoreEos) out.bool(11, true);
  // 0 would give nothing at all, not even the sampled token's own.
  if (params.logprobs !== undefined) out.int32(12, Math.max(1, params.logprobs));
  if (params.seed !== undefined) out.int32(13, seed32(params.seed));
}
