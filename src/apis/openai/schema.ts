/** Fields that Chat Completions and Completions have in common. */
import { Type as t } from "@sinclair/typebox";
import { maybe, stopStrings } from "../shared/sampling-fields.ts";

export const streamFields = {
  stream: maybe(t.Boolean()),
  stream_options: maybe(
    t.Object({
      include_usage: maybe(t.Boolean()),
      continuous_usage_stats: maybe(t.Boolean()),
      include_obfuscation: maybe(t.Boolean()),
    }),
  ),
} as const;

export const openAiSampling = {
  temperature: maybe(t.Number({ minimum: 0, maximum: 2 })),
  top_p: maybe(t.Number({ exclusiveMinimum: 0, maximum: 1 })),
  stop: stopStrings,
} as const;

/** `usage` of an answer: see `usage.ts`. */
export const usageObject = t.Object({
  prompt_tokens: t.Integer(),
  completion_tokens: t.Integer(),
  total_tokens: t.Integer(),
  prompt_tokens_details: t.Object({ cached_tokens: t.Integer() }),
  completion_tokens_details: t.Object({ reasoning_tokens: t.Integer() }),
});
