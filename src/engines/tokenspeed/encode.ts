/** GenerateRequest of the TokenSpeed dialect, written by hand (`proto/tokenspeed_scheduler.proto`). */
import { WireWriter } from "../../protobuf/writer.ts";
import { ANY_OBJECT, assembleRequest, regexOfChoices, seed64, writeLogitBias, writeMeeting } from "../encode.ts";
import { type Constraint, EngineError, type GenerateRequest, type SamplingParams } from "../engine.ts";

// One request is encoded at a time, so the scratch buffers are shared.
const head = new WireWriter();
const tail = new WireWriter();

export function encodeGenerateRequest(request: GenerateRequest): Uint8Array {
  const { logprobs } = request.sampling;
  if (request.tokenIds.length === 0) throw new EngineError("invalid", "the prompt is empty");
  head.reset().text(1, request.requestId);
  const sampling = tail.reset().begin(3);
  writeSampling(tail, request.sampling);
  tail.end(sampling);
  if (logprobs !== undefined) {
    tail.bool(4, true);
    tail.int32(6, Math.max(0, logprobs));
  }
  if (request.stream) tail.bool(8, true);
  writeMeeting(tail, 11, request.handover);
  if (request.dataParallelRank !== undefined) tail.int32(12, request.dataParallelRank);
  return assembleRequest(head.written(), 1, request.tokenIds, tail.written());
}

/** Absent numbers mean the engine's own defaults, which the gateway does not know: each is sent. */
function writeSampling(out: WireWriter, params: SamplingParams): void {
  const { topK = 0 } = params;
  out.float(1, params.temperature ?? 1);
  out.float(2, params.topP ?? 1);
  out.int32(3, topK > 0 ? topK : -1);
  out.float(4, params.minP ?? 0);
  out.float(5, params.frequencyPenalty ?? 0);
  out.float(6, params.presencePenalty ?? 0);
  out.float(7, params.repetitionPenalty ?? 1);
  if (params.maxTokens !== undefined) out.uint32(8, params.maxTokens);
  if (params.minTokens) out.uint32(9, params.minTokens);
  for (const stop of params.stop ?? []) out.text(10, stop);
  out.packedUint32(11, params.stopTokenIds ?? []);
  if (params.ignoreEos) out.bool(12, true);
  if (params.skipSpecialTokens ?? true) out.bool(13, true);
  if (params.spacesBetweenSpecialTokens ?? true) out.bool(14, true);
  out.uint32(15, Math.max(1, params.n ?? 1));
  writeLogitBias(out, 16, params.logitBias, "texts");
  if (params.constraint !== undefined) writeConstraint(out, params.constraint);
  if (params.includeStopStrInOutput) out.bool(22, true);
  if (params.seed !== undefined) out.int64(23, seed64(params.seed));
}

function writeConstraint(out: WireWriter, constraint: Constraint): void {
  switch (constraint.kind) {
    case "regex":
      out.string(17, constraint.pattern);
      break;
    case "choice":
      out.string(17, regexOfChoices(constraint.choices));
      break;
    case "json_schema":
      out.string(18, constraint.schema);
      break;
    case "json_object":
      out.string(18, ANY_OBJECT);
      break;
    case "grammar":
      out.string(19, constraint.grammar);
      break;
    case "structural_tag":
      out.string(20, constraint.tag);
      break;
  }
}
