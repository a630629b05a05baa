/** GenerateRequest of the vLLM dialect, written by hand (`proto/vllm_engine.proto`). */
import { WireType } from "../../protobuf/wire-error.ts";
import { putVarint, varintSize, WireWriter } from "../../protobuf/writer.ts";
import type { Constraint, GenerateRequest, SamplingParams } from "../engine.ts";

/** Most rows of top logprobs that the engine gives per token (its `--max-logprobs`). */
export const MAX_LOGPROB_ROWS = 20;

const MAX_INT32 = 0x7fffffff;
const ANY_OBJECT = '{"type":"object"}';

// One request is encoded at a time, so the scratch buffers are shared.
const head = new WireWriter();
const sampling = new WireWriter();
const nested = new WireWriter();

/**
 * Rows to ask for so that the best `count` are among them: the engine always gives the sampled token first, and for a token
 * outside the best `count` it leaves out the last of them.
 */
export function logprobRowsToAsk(count: number): number {
  return count <= 0 ? 0 : Math.min(count + 1, MAX_LOGPROB_ROWS);
}

/** The request's bytes, in a buffer of exact size. */
export function encodeGenerateRequest(request: GenerateRequest): Uint8Array {
  const { tokenIds } = request;
  head.reset();
  if (request.requestId !== "") head.string(1, request.requestId);
  sampling.reset();
  writeSampling(sampling, request.sampling);
  nested.reset();
  if (request.stream) nested.bool(5, true);
  if (request.dataParallelRank !== undefined) nested.int32(9, request.dataParallelRank);
  const first = head.written();
  const params = sampling.written();
  const last = nested.written();

  let packed = 0;
  for (let i = 0; i < tokenIds.length; i++) packed += varintSize(tokenIds[i]!);
  const tokenized = packed === 0 ? 0 : 1 + varintSize(packed) + packed;
  const size =
    first.length + 1 + varintSize(tokenized) + tokenized + 1 + varintSize(params.length) + params.length + last.length;

  const out = new Uint8Array(size);
  out.set(first);
  let at = first.length;
  out[at++] = (2 << 3) | WireType.BYTES;
  at = putVarint(out, at, tokenized);
  if (packed > 0) {
    out[at++] = (2 << 3) | WireType.BYTES;
    at = putVarint(out, at, packed);
    for (let i = 0; i < tokenIds.length; i++) {
      let id = tokenIds[i]!;
      while (id > 127) {
        out[at++] = (id & 127) | 128;
        id >>>= 7;
      }
      out[at++] = id;
    }
  }
  out[at++] = (4 << 3) | WireType.BYTES;
  at = putVarint(out, at, params.length);
  out.set(params, at);
  out.set(last, at + params.length);
  return out;
}

function writeSampling(out: WireWriter, params: SamplingParams): void {
  if (params.temperature !== undefined) out.float(1, params.temperature);
  out.float(2, params.topP ?? 1);
  if (params.topK !== undefined && params.topK > 0) out.uint32(3, params.topK);
  if (params.minP) out.float(4, params.minP);
  if (params.frequencyPenalty) out.float(5, params.frequencyPenalty);
  if (params.presencePenalty) out.float(6, params.presencePenalty);
  out.float(7, params.repetitionPenalty ?? 1);
  if (params.maxTokens !== undefined) out.uint32(8, params.maxTokens);
  if (params.minTokens) out.uint32(9, params.minTokens);
  // An empty stop string is refused by the engine and stops nothing.
  for (const stop of params.stop ?? []) if (stop !== "") out.string(10, stop);
  if (params.stopTokenIds !== undefined && params.stopTokenIds.length > 0) out.packedUint32(11, params.stopTokenIds);
  if (params.skipSpecialTokens ?? true) out.bool(12, true);
  if (params.spacesBetweenSpecialTokens ?? true) out.bool(13, true);
  if (params.ignoreEos) out.bool(14, true);
  out.uint32(15, Math.max(1, params.n ?? 1));
  if (params.constraint !== undefined) writeConstraint(out, params.constraint);
  if (params.logprobs !== undefined) out.int32(22, logprobRowsToAsk(params.logprobs));
  if (params.promptLogprobs !== undefined) out.int32(23, logprobRowsToAsk(params.promptLogprobs));
  if (params.seed !== undefined) out.int32(24, foldSeed(params.seed));
  if (params.includeStopStrInOutput) out.bool(25, true);
  if (params.logitBias !== undefined) {
    for (const [id, bias] of params.logitBias) {
      nested.reset();
      nested.int32(1, id);
      nested.float(2, bias);
      out.message(26, nested.written());
    }
  }
}

function writeConstraint(out: WireWriter, constraint: Constraint): void {
  switch (constraint.kind) {
    case "json_schema":
      out.string(16, constraint.schema);
      return;
    case "json_object":
      // Field 20 says the same, but only newer servicers are known to read it.
      out.string(16, ANY_OBJECT);
      return;
    case "regex":
      out.string(17, constraint.pattern);
      return;
    case "grammar":
      out.string(18, constraint.grammar);
      return;
    case "structural_tag":
      out.string(19, constraint.tag);
      return;
    case "choice":
      nested.reset();
      for (const choice of constraint.choices) nested.string(1, choice);
      out.message(21, nested.written());
  }
}

/** The wire has 32 bits for a seed: larger ones are folded, so that they stay different from each other. */
function foldSeed(seed: number): number {
  const whole = Math.trunc(seed);
  if (Math.abs(whole) <= MAX_INT32) return whole;
  const high = Math.floor(whole / 2 ** 32);
  return (whole ^ high) | 0;
}
