/** GenerateRequest of the vLLM dialect, written by hand (`proto/vllm_engine.proto`). */
import { WireWriter } from "../../protobuf/writer.ts";
import { ANY_OBJECT, assembleRequest, seed32, writeLogitBias, wrongHandover } from "../encode.ts";
import type { Constraint, GenerateRequest, Handover, SamplingParams } from "../engine.ts";

/** Most rows of top logprobs that the engine gives per token (its `--max-logprobs`). */
export const MAX_LOGPROB_ROWS = 20;

// One request is encoded at a time, so the scratch buffers are shared.
const head = new WireWriter();
const tail = new WireWriter();

/**
 * Rows to ask for so that the best `count` are among them: the engine always gives the sampled token first, and for a token
 * outside the best `count` it leaves out the last of them.
 */
export function logprobRowsToAsk(count: number): number {
  return count <= 0 ? 0 : Math.min(count + 1, MAX_LOGPROB_ROWS);
}

/** The request's bytes, in a buffer of exact size. */
export function encodeGenerateRequest(request: GenerateRequest): Uint8Array {
  head.reset().text(1, request.requestId);
  const sampling = tail.reset().begin(4);
  writeSampling(tail, request.sampling);
  tail.end(sampling);
  if (request.stream) tail.bool(5, true);
  if (request.handover !== undefined) writeHandover(tail, request.handover);
  if (request.dataParallelRank !== undefined) tail.int32(9, request.dataParallelRank);
  return assembleRequest(head.written(), 2, request.tokenIds, tail.written());
}

/** The engine reads a JSON object, or the older message of a host and a port. */
function writeHandover(out: WireWriter, handover: Handover): void {
  switch (handover.kind) {
    case "transfer":
      out.string(8, handover.json);
      return;
    case "remote": {
      const mark = out.begin(6);
      out.text(1, handover.host);
      out.uint32(2, handover.port);
      out.end(mark);
      return;
    }
    case "bootstrap":
      throw wrongHandover();
  }
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
  for (const stop of params.stop ?? []) out.text(10, stop);
  out.packedUint32(11, params.stopTokenIds ?? []);
  if (params.skipSpecialTokens ?? true) out.bool(12, true);
  if (params.spacesBetweenSpecialTokens ?? true) out.bool(13, true);
  if (params.ignoreEos) out.bool(14, true);
  out.uint32(15, Math.max(1, params.n ?? 1));
  if (params.constraint !== undefined) writeConstraint(out, params.constraint);
  if (params.logprobs !== undefined) out.int32(22, logprobRowsToAsk(params.logprobs));
  if (params.promptLogprobs !== undefined) out.int32(23, logprobRowsToAsk(params.promptLogprobs));
  if (params.seed !== undefined) out.int32(24, seed32(params.seed));
  if (params.includeStopStrInOutput) out.bool(25, true);
  writeLogitBias(out, 26, params.logitBias, "numbers");
}

function writeConstraint(out: WireWriter, constraint: Constraint): void {
  switch (constraint.kind) {
    case "json_schema":
      out.string(16, constraint.schema);
      return;
    case "json_object":
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
    case "choice": {
      const mark = out.begin(21);
      for (const choice of constraint.choices) out.string(1, choice);
      out.end(mark);
    }
  }
}
