/** Generations of the TokenSpeed dialect. */
import { rolesOf } from "../decode.ts";
import { COMMON_RULES, type GenerateRules } from "../generate-rules.ts";
import { encodeGenerateRequest } from "./encode.ts";

export const tokenspeedGenerate: GenerateRules = {
  ...COMMON_RULES,
  path: "/tokenspeed.grpc.scheduler.TokenSpeedScheduler/Generate",
  encode: encodeGenerateRequest,
  layout: {
    chunkField: 2,
    completeField: 3,
    chunk: rolesOf({ tokenIds: 1, promptTokens: 2, cachedTokens: 4, outputLogprobs: 5, index: 6 }),
    complete: rolesOf({
      tokenIds: 1,
      finishReason: 2,
      promptTokens: 3,
      completionTokens: 4,
      cachedTokens: 5,
      outputLogprobs: 6,
      matchedTokenId: 7,
      matchedStop: 8,
      index: 9,
    }),
  },
  // An abort is a status here; what says otherwise is a failure all the same.
  reasons: new Map([
    ["stop", "stop"],
    ["length", "length"],
    ["abort", "abort"],
  ]),
};
