/** GenerateRequest of the TensorRT-LLM dialect, written by hand (`proto/trtllm_service.proto`). */
import { WireWriter } from "../../protobuf/writer.ts";
import { ANY_OBJECT, assembleRequest, regexOfChoices, seed64, stopIdsWithEos } from "../encode.ts";
import { type Constraint, EngineError, type GenerateRequest, type SamplingParams } from "../engine.ts";
import type { EngineFacts } from "../facts.ts";

/** The server takes no larger message. */
const MAX_REQUEST_BYTES = 32 << 20;
/** The engine has no default; this one where neither the request nor the model's context tells. */
const LENGTH_WITHOUT_CONTEXT = 2048;

const GuideType = { jsonSchema: 2, regex: 3, grammar: 4, structuralTag: 5 } as const;

// One request is encoded at a time, so the scratch buffers are shared.
const head = new WireWriter();
const tail = new WireWriter();

export function encodeGenerateRequest(request: GenerateRequest, { contextLength }: EngineFacts): Uint8Array {
  const { sampling, tokenIds } = request;
  const room = contextLength > tokenIds.length ? contextLength - tokenIds.length : LENGTH_WITHOUT_CONTEXT;
  head.reset().text(1, request.requestId);
  const config = tail.reset().begin(3);
  writeSampling(tail, sampling);
  tail.end(config);
  const output = tail.begin(4);
  if (sampling.logprobs !== undefined) tail.int32(1, Math.max(0, sampling.logprobs));
  if (sampling.promptLogprobs !== undefined) tail.int32(2, Math.max(0, sampling.promptLogprobs));
  tail.bool(5, true); // the prompt's ids stay out of the answer's
  tail.end(output);
  tail.uint32(5, sampling.maxTokens ?? room);
  if (request.stream) tail.bool(6, true);
  if (sampling.constraint !== undefined) writeGuide(tail, sampling.constraint);
  for (const stop of sampling.stop ?? []) tail.text(21, stop);
  tail.packedUint32(22, stopIdsWithEos(request));
  if (sampling.ignoreEos) tail.bool(23, true);
  if (sampling.includeStopStrInOutput) tail.bool(26, true);
  const bytes = assembleRequest(head.written(), 2, tokenIds, tail.written());
  if (bytes.length > MAX_REQUEST_BYTES)
    throw new EngineError("invalid", `the request has ${bytes.length} bytes, more than the engine takes`);
  return bytes;
}

function writeSampling(out: WireWriter, params: SamplingParams): void {
  out.int32(1, 1); // beams
  out.uint32(2, Math.max(1, params.n ?? 1));
  if (params.topK !== undefined && params.topK > 0) out.int32(3, params.topK);
  out.float(4, params.topP ?? 1);
  if (params.seed !== undefined) out.int64(8, seed64(params.seed));
  out.float(9, params.temperature ?? 1);
  if (params.minTokens) out.uint32(10, params.minTokens);
  out.float(12, params.repetitionPenalty ?? 1);
  if (params.presencePenalty) out.float(13, params.presencePenalty);
  if (params.frequencyPenalty) out.float(14, params.frequencyPenalty);
  if (params.minP) out.float(19, params.minP);
}

function writeGuide(out: WireWriter, constraint: Constraint): void {
  const [type, guide] = guideOf(constraint);
  // The engine takes an empty guide for none.
  if (guide === "") throw new EngineError("invalid", `the ${constraint.kind} of the output is empty`);
  const mark = out.begin(11);
  out.uint32(1, type);
  out.string(2, guide);
  out.end(mark);
}

function guideOf(constraint: Constraint): readonly [number, string] {
  switch (constraint.kind) {
    case "json_schema":
      return [GuideType.jsonSchema, constraint.schema];
    case "json_object":
      return [GuideType.jsonSchema, ANY_OBJECT];
    case "regex":
      return [GuideType.regex, constraint.pattern];
    case "choice":
      return [GuideType.regex, regexOfChoices(constraint.choices)];
    case "grammar":
      return [GuideType.grammar, constraint.grammar];
    case "structural_tag":
      return [GuideType.structuralTag, constraint.tag];
  }
}
