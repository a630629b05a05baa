/** Generations of the vLLM dialect. */
import { rolesOf } from "../decode.ts";
import { COMMON_RULES, type GenerateRules } from "../generate-rules.ts";
import { encodeGenerateRequest } from "./encode.ts";

export const vllmGenerate: GenerateRules = {
  ...COMMON_RULES,
  path: "/vllm.grpc.engine.VllmEngine/Generate",
  encode: encodeGenerateRequest,
  layout: {
    chunkField: 1,
    completeField: 2,
    chunk: rolesOf({
      tokenIds: 1,
      promptTokens: 2,
      cachedTokens: 4,
      outputLogprobs: 5,
      inputLogprobs: 6,
      index: 7,
    }),
    complete: rolesOf({
      tokenIds: 1,
      finishReason: 2,
      promptTokens: 3,
      completionTokens: 4,
      cachedTokens: 5,
      outputLogprobs: 6,
      inputLogprobs: 7,
      index: 8,
      handoverPlace: 9,
      matchedTokenId: 10,
      matchedStop: 11,
      handoverJson: 12,
    }),
  },
  countsMessages: true,
  // "repetition" is its own stop on endless repetition.
  reasons: new Map([
    ["", "stop"],
    ["stop", "stop"],
    ["repetition", "stop"],
    ["length", "length"],
    ["abort", "abort"],
  ]),
  oneSampleBelow: 1e-5,
};
