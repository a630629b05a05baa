/** Generations of the TensorRT-LLM dialect. */
import { rolesOf } from "../decode.ts";
import { COMMON_RULES, type GenerateRules } from "../generate-rules.ts";
import { encodeGenerateRequest } from "./encode.ts";

export const trtllmGenerate: GenerateRules = {
  ...COMMON_RULES,
  path: "/trtllm.TrtllmService/Generate",
  encode: encodeGenerateRequest,
  layout: {
    chunkField: 2,
    completeField: 3,
    chunk: rolesOf({ tokenIds: 1, index: 2, promptTokens: 3, cachedTokens: 5, outputLogprob: 6 }),
    complete: rolesOf({
      tokenIds: 1,
      index: 2,
      finishReason: 3,
      matchedStop: 4,
      promptTokens: 5,
      completionTokens: 6,
      cachedTokens: 7,
      outputLogprob: 8,
      promptLogprob: 9,
      matchedTokenId: 13,
    }),
  },
  reasons: new Map([
    ["", "stop"],
    ["stop", "stop"],
    ["stop_word", "stop"],
    ["length", "length"],
    ["cancelled", "abort"],
  ]),
  firstPromptLogprobIsNone: true,
};
