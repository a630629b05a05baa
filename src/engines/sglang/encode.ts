/** GenerateRequest of the SGLang dialect, written by hand (`proto/sglang_scheduler.proto`). */
import { WireWriter } from "../../protobuf/writer.ts";
import { ANY_OBJECT, assembleRequest, regexOfChoices, writeLogitBias, writeMeeting } from "../encode.ts";
import type { Constraint, GenerateRequest, SamplingParams } from "../engine.ts";
import type { EngineFacts } from "../facts.ts";

// One request is encoded at a time, so the scratch buffers are shared.
const head = new WireWriter();
const tail = new WireWriter();

export function encodeGenerateRequest(request: GenerateRequest, facts: EngineFacts): Uint8Array {
  const { logprobs, promptLogprobs } = request.sampling;
  head.reset().text(1, request.requestId);
  const sampling = tail.reset().begin(4);
  writeSampling(tail, request.sampling);
  tail.end(sampling);
  const wantsLogprobs = logprobs !== undefined || promptLogprobs !== undefined;
  if (wantsLogprobs) tail.bool(5, true);
  // Without presence: absent would ask for the logprobs of the whole prompt.
  tail.int32(6, promptLogprobs === undefined ? -1 : 0);
  if (wantsLogprobs) tail.int32(7, Math.max(0, logprobs ?? 0, promptLogprobs ?? 0));
  writeMeeting(tail, 10, request.handover);
  if (request.stream) tail.bool(17, true);
  // Only then does the engine wait for the end of the reasoning before it applies a constraint.
  if (request.startsInReasoning === true && facts.waitsForReasoning === true) tail.bool(18, true);
  return assembleRequest(head.written(), 2, request.tokenIds, tail.written());
}

/** The scalars have no presence, so each is sent: absent would mean greedy, top_p 0 and so on. String stops stay with the gateway. */
function writeSampling(out: WireWriter, params: SamplingParams): void {
  const { topK = 0 } = params;
  out.float(1, params.temperature ?? 1);
  out.float(2, params.topP ?? 1);
  out.int32(3, topK > 0 ? topK : -1);
  if (params.minP) out.float(4, params.minP);
  if (params.frequencyPenalty) out.float(5, params.frequencyPenalty);
  if (params.presencePenalty) out.float(6, params.presencePenalty);
  out.float(7, params.repetitionPenalty ?? 1);
  if (params.maxTokens !== undefined) out.uint32(8, params.maxTokens);
  out.packedUint32(10, params.stopTokenIds ?? []);
  if (params.skipSpecialTokens ?? true) out.bool(11, true);
  if (params.spacesBetweenSpecialTokens ?? true) out.bool(12, true);
  if (params.constraint !== undefined) writeConstraint(out, params.constraint);
  out.uint32(17, Math.max(1, params.n ?? 1));
  if (params.minTokens) out.uint32(18, params.minTokens);
  if (params.ignoreEos) out.bool(19, true);
  if (params.includeStopStrInOutput) out.bool(20, true);
  writeLogitBias(out, 22, params.logitBias, "texts");
}

function writeConstraint(out: WireWriter, constraint: Constraint): void {
  switch (constraint.kind) {
    case "regex":
      out.string(13, constraint.pattern);
      break;
    case "choice":
      out.string(13, regexOfChoices(constraint.choices));
      break;
    case "json_schema":
      out.string(14, constraint.schema);
      break;
    case "json_object":
      out.string(14, ANY_OBJECT);
      break;
    case "grammar":
      out.string(15, constraint.grammar);
      break;
    case "structural_tag":
      out.string(16, constraint.tag);
      break;
  }
}
