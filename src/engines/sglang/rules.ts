/** Generations of the SGLang dialect. */
import { rolesOf } from "../decode.ts";
import { COMMON_RULES, type GenerateRules } from "../generate-rules.ts";
import { encodeGenerateRequest } from "./encode.ts";

export const sglangGenerate: GenerateRules = {
  ...COMMON_RULES,
  path: "/sglang.grpc.scheduler.SglangScheduler/Generate",
  encode: encodeGenerateRequest,
  layout: {
    chunkField: 2,
    completeField: 3,
    chunk: rolesOf({
      tokenIds: 1,
      promptTokens: 2,
      cachedTokens: 4,
      outputLogprobs: 5,
      inputLogprobs: 7,
      index: 8,
    }),
    complete: rolesOf({
      tokenIds: 1,
      finishReason: 2,
      promptTokens: 3,
      completionTokens: 4,
      cachedTokens: 5,
      outputLogprobs: 6,
      matchedTokenId: 8,
      matchedStop: 9,
      inputLogprobs: 10,
      index: 11,
    }),
  },
  // Without a stream its Python servicer makes them one after another, and says index 0 of each.
  streamsSeveral: true,
  reasons: new Map([
    ["stop", "stop"],
    ["length", "length"],
    ["abort", "abort"],
  ]),
};
