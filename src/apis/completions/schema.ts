import { type Static, Type as t } from "@sinclair/typebox";
import { promptFields } from "../chat/schema.ts";
import { openAiSampling, streamFields, usageObject } from "../openai/schema.ts";
import { extensionFields, int, maybe, nullable } from "../shared/sampling-fields.ts";

const ids = { type: "array", items: { type: "integer", minimum: 0 }, minItems: 1 };

/**
 * Request of `POST /v1/completions`: OpenAI's fields and vLLM's extensions. Fields that are not listed are accepted and ignored.
 */
export const completionRequest = t.Object(
  {
    model: t.String({ minLength: 1 }),
    /** Looked at by `poolingInputs`. */
    prompt: t.Optional(
      t.Any({
        description: "A text, texts, token ids, or lists of token ids",
        anyOf: [
          { type: "string" },
          { type: "array", items: { type: "string" }, minItems: 1 },
          ids,
          { type: "array", items: ids, minItems: 1 },
        ],
      }),
    ),
    suffix: maybe(
      t.String({
        description: "What comes behind the text that is asked for; only for models that fill in the middle",
      }),
    ),
    echo: maybe(t.Boolean({ description: "The answer begins with the prompt" })),
    ...streamFields,
    max_tokens: maybe(int({ minimum: 0 })),
    n: maybe(int({ minimum: 1, maximum: 128 })),
    best_of: maybe(int({ minimum: 1 })),
    ...openAiSampling,
    logprobs: maybe(int({ minimum: 0, maximum: 20 })),

    ...extensionFields,
    response_format: promptFields.response_format,
    add_special_tokens: maybe(
      t.Boolean({ description: "Put the model's special tokens (BOS) around texts; true by default" }),
    ),
    truncation_side: maybe(t.Union([t.Literal("left"), t.Literal("right")])),
    return_token_ids: maybe(t.Boolean()),
    return_tokens_as_token_ids: maybe(t.Boolean()),
    prompt_embeds: t.Optional(t.Unknown()),
  },
  { additionalProperties: true, description: "Fields that are not listed are accepted and ignored." },
);
export type CompletionRequest = Static<typeof completionRequest>;

/** Answer of `POST /v1/completions` without `stream`. */
export const completionResponse = t.Object({
  id: t.String(),
  object: t.Literal("text_completion"),
  created: t.Integer({ description: "Unix time in seconds" }),
  model: t.String(),
  choices: t.Array(
    t.Object({
      index: t.Integer({ description: "Number of the prompt times n, plus the number of the choice" }),
      text: t.String(),
      logprobs: nullable(
        t.Object({
          tokens: t.Array(t.String()),
          token_logprobs: t.Array(nullable(t.Number())),
          top_logprobs: t.Array(nullable(t.Record(t.String(), t.Number()))),
          text_offset: t.Array(t.Integer({ description: "Where in the text a token begins, in characters" })),
        }),
      ),
      finish_reason: t.String(),
      stop_reason: t.Optional(t.Union([t.String(), t.Integer()])),
      matched_stop: t.Optional(t.Union([t.String(), t.Integer()])),
      token_ids: t.Optional(t.Array(t.Integer())),
      prompt_token_ids: t.Optional(t.Array(t.Integer())),
    }),
  ),
  usage: usageObject,
});
