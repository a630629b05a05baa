import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { int, logitBias, maybe, nullable, stopStrings } from "../shared/sampling-fields.ts";

/** A value for all prompts of a batch, or one for each. */
const each = <S extends TSchema>(schema: S) => maybe(t.Union([schema, t.Array(nullable(schema))]));

/** SGLang's `sampling_params`. */
export const samplingParameters = t.Object(
  {
    max_new_tokens: maybe(int({ minimum: 0 })),
    min_new_tokens: maybe(int({ minimum: 0 })),
    n: maybe(int({ minimum: 1, maximum: 128 })),
    temperature: maybe(t.Number({ minimum: 0 })),
    top_p: maybe(t.Number({ exclusiveMinimum: 0, maximum: 1 })),
    top_k: maybe(int({ minimum: -1 })),
    min_p: maybe(t.Number({ minimum: 0, maximum: 1 })),
    frequency_penalty: maybe(t.Number({ minimum: -2, maximum: 2 })),
    presence_penalty: maybe(t.Number({ minimum: -2, maximum: 2 })),
    repetition_penalty: maybe(t.Number({ exclusiveMinimum: 0, maximum: 2 })),
    stop: stopStrings,
    stop_token_ids: maybe(t.Array(int({ minimum: 0 }), { maxItems: 1024 })),
    ignore_eos: maybe(t.Boolean()),
    skip_special_tokens: maybe(t.Boolean()),
    spaces_between_special_tokens: maybe(t.Boolean()),
    no_stop_trim: maybe(t.Boolean()),
    sampling_seed: maybe(t.Integer()),
    logit_bias: logitBias,
    json_schema: maybe(t.String()),
    regex: maybe(t.String({ minLength: 1 })),
    ebnf: maybe(t.String({ minLength: 1 })),
    structural_tag: maybe(t.String({ minLength: 1 })),
    stream_interval: maybe(int({ minimum: 1 })),
  },
  { additionalProperties: true },
);
export type SamplingParameters = Static<typeof samplingParameters>;

/**
 * Request of `POST /generate`, by SGLang's public documentation of its native API and its sampling parameters (docs.sglang.io). What it
 * has beyond the fields below is refused by name when it says something.
 */
export const generateRequest = t.Object(
  {
    model: maybe(t.String({ description: "Needed where several models are served; SGLang serves one" })),
    /** These two are looked at by `poolingInputs`. */
    text: t.Optional(t.Any({ description: "A text or a list of texts" })),
    input_ids: t.Optional(t.Any({ description: "Token ids, or lists of them, in the place of text" })),
    sampling_params: maybe(t.Union([samplingParameters, t.Array(nullable(samplingParameters))])),
    return_logprob: each(t.Boolean()),
    logprob_start_len: each(int({ minimum: -1 })),
    top_logprobs_num: each(int({ minimum: 0, maximum: 20 })),
    return_text_in_logprobs: maybe(t.Boolean()),
    return_prompt_token_ids: maybe(t.Boolean()),
    stream: maybe(t.Boolean()),
    rid: maybe(t.Union([t.String({ maxLength: 128 }), t.Array(t.String({ maxLength: 128 }))])),
    routed_dp_rank: maybe(int({ minimum: 0 })),
    data_parallel_rank: maybe(int({ minimum: 0 })),
  },
  { additionalProperties: true },
);
export type GenerateRequest = Static<typeof generateRequest>;

const logprob = t.Array(t.Unknown(), { description: "[logprob, token id, text]; the first token has no logprob" });
const result = t.Object({
  text: t.String(),
  output_ids: t.Array(t.Integer()),
  prompt_token_ids: t.Optional(t.Array(t.Integer())),
  meta_info: t.Object({
    id: t.String(),
    finish_reason: nullable(
      t.Object({
        type: t.String({ description: "stop or length" }),
        matched: t.Optional(t.Union([t.String(), t.Integer()])),
        length: t.Optional(t.Integer()),
      }),
    ),
    prompt_tokens: t.Integer(),
    completion_tokens: t.Integer(),
    cached_tokens: t.Integer(),
    e2e_latency: t.Optional(t.Number({ description: "Seconds" })),
    input_token_logprobs: t.Optional(t.Array(logprob)),
    output_token_logprobs: t.Optional(t.Array(logprob)),
    input_top_logprobs: t.Optional(t.Array(nullable(t.Array(logprob)))),
    output_top_logprobs: t.Optional(t.Array(t.Array(logprob))),
    output_token_logprobs_length: t.Optional(t.Integer()),
  }),
  index: t.Optional(t.Integer({ description: "In streams of several results" })),
});

/** Answer of `POST /generate` without `stream`: of a batch, or with `n`, a list, prompt by prompt. */
export const generateResponse = t.Union([result, t.Array(result)]);
