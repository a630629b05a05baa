/** Generations of the MLX dialect. */
import { rolesOf } from "../decode.ts";
import { COMMON_RULES, type GenerateRules } from "../generate-rules.ts";
import { encodeGenerateRequest } from "./encode.ts";

export const mlxGenerate: GenerateRules = {
  ...COMMON_RULES,
  path: "/mlx.grpc.engine.MlxEngine/Generate",
  encode: encodeGenerateRequest,
  layout: {
    chunkField: 1,
    completeField: 2,
    chunk: rolesOf({ tokenIds: 1, promptTokens: 2, cachedTokens: 4, outputLogprobs: 5, index: 6 }),
    complete: rolesOf({
      tokenIds: 1,
      finishReason: 2,
      promptTokens: 3,
      completionTokens: 4,
      cachedTokens: 5,
      outputLogprobs: 6,
      index: 7,
      matchedTokenId: 8,
    }),
  },
  reasons: new Map([
    ["stop", "stop"],
    ["length", "length"],
  ]),
  // So it ends what an Abort named, whoever sent that.
  bareEnd: "the engine aborted the request",
};
