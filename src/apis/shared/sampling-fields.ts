/** Fields that vLLM and SGLang add to the vendors' APIs; all of ours take them. */
import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { UnsupportedError } from "../../errors.ts";
import type { SamplingAsk } from "./sampling.ts";

/** Absent and null mean the same. */
export const maybe = <S extends TSchema>(schema: S) => t.Optional(t.Union([schema, t.Null()]));
/** Null where there is nothing. */
export const nullable = <S extends TSchema>(schema: S) => t.Union([schema, t.Null()]);
/** Whole numbers; no engine's wire takes more than 32 bits, and a larger one would arrive as another. */
export const int = (options: { minimum?: number; maximum?: number } = {}) =>
  t.Integer({ maximum: 2 ** 31 - 1, ...options });
const object = t.Record(t.String(), t.Unknown());

/** OpenAI takes four stop strings; engines take more. */
export const stopStrings = maybe(
  t.Union([t.String({ minLength: 1 }), t.Array(t.String({ minLength: 1 }), { maxItems: 64 })]),
);
/** By token id. */
export const logitBias = maybe(t.Record(t.String(), t.Number({ minimum: -100, maximum: 100 })));

/** What engines sample by; some APIs name the first four themselves. */
export const samplingFields = {
  seed: maybe(t.Integer()),
  frequency_penalty: maybe(t.Number({ minimum: -2, maximum: 2 })),
  presence_penalty: maybe(t.Number({ minimum: -2, maximum: 2 })),
  logit_bias: logitBias,
  top_k: maybe(int({ minimum: -1 })),
  min_p: maybe(t.Number({ minimum: 0, maximum: 1 })),
  repetition_penalty: maybe(t.Number({ exclusiveMinimum: 0, maximum: 2 })),
  min_tokens: maybe(int({ minimum: 0 })),
  stop_token_ids: maybe(t.Array(int({ minimum: 0 }), { maxItems: 1024 })),
  ignore_eos: maybe(t.Boolean()),
  sampling_seed: maybe(t.Integer()),
  skip_special_tokens: maybe(t.Boolean()),
  spaces_between_special_tokens: maybe(t.Boolean()),
  include_stop_str_in_output: maybe(t.Boolean()),
  no_stop_trim: maybe(t.Boolean()),
} as const;

/** Constraints of the output: see `constraintExtensions`. */
export const constraintFields = {
  regex: maybe(t.String({ minLength: 1 })),
  ebnf: maybe(t.String({ minLength: 1 })),
  json_schema: maybe(t.Union([t.String(), object])),
  structured_outputs: maybe(object),
  guided_json: maybe(t.Union([t.String(), object])),
  guided_regex: maybe(t.String({ minLength: 1 })),
  guided_choice: maybe(t.Array(t.String(), { minItems: 1 })),
  guided_grammar: maybe(t.String({ minLength: 1 })),
} as const;

/** How a request goes to its engine. */
export const dispatchFields = {
  rid: maybe(t.String({ maxLength: 128 })),
  request_id: maybe(t.String({ maxLength: 128 })),
  data_parallel_rank: maybe(int({ minimum: 0 })),
  routed_dp_rank: maybe(int({ minimum: 0 })),
  truncate_prompt_tokens: maybe(int({ minimum: -1 })),
} as const;

/** All of them. */
export const extensionFields = { ...samplingFields, ...constraintFields, ...dispatchFields } as const;

const sampled = t.Object(samplingFields);
const dispatched = t.Object(dispatchFields);
export type SamplingFields = Static<typeof sampled>;
export type DispatchFields = Static<typeof dispatched>;

/** What these fields ask of the sampling; an API's other fields come on top. */
export function extensionAsk(body: SamplingFields): SamplingAsk {
  return {
    topK: body.top_k,
    minP: body.min_p,
    repetitionPenalty: body.repetition_penalty,
    minTokens: body.min_tokens,
    stopTokenIds: body.stop_token_ids,
    ignoreEos: body.ignore_eos,
    seed: body.seed ?? body.sampling_seed,
    frequencyPenalty: body.frequency_penalty,
    presencePenalty: body.presence_penalty,
    logitBias: body.logit_bias,
    skipSpecialTokens: body.skip_special_tokens,
    spacesBetweenSpecialTokens: body.spaces_between_special_tokens,
    includeStop: body.include_stop_str_in_output === true || body.no_stop_trim === true,
  };
}

/** The part of a call that `dispatchFields` say. */
export function dispatchAsk(body: DispatchFields): {
  readonly requestId?: string;
  readonly dataParallelRank?: number;
  readonly keepLast?: number;
} {
  const requestId = body.rid ?? body.request_id ?? undefined;
  const rank = body.data_parallel_rank ?? body.routed_dp_rank ?? undefined;
  const keepLast = body.truncate_prompt_tokens ?? undefined;
  return {
    ...(requestId !== undefined && { requestId }),
    ...(rank !== undefined && { dataParallelRank: rank }),
    ...(keepLast !== undefined && { keepLast }),
  };
}

/** Fields that would change the answer but that no engine's wire can carry: refused rather than dropped. */
const UNSUPPORTED = [
  "length_penalty",
  "use_beam_search",
  "best_of",
  "bad_words",
  "allowed_token_ids",
  "stop_regex",
  "repetition_detection",
  "thinking_token_budget",
  "lora_path",
  "cache_salt",
  "extra_key",
  "vllm_xargs",
  "custom_params",
  "custom_logit_processor",
  "prompt_logprobs",
  "logprob_token_ids",
  "return_hidden_states",
  "return_routed_experts",
  "add_special_tokens",
] as const;

/** Has the client given a field a meaning? */
export const asked = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0);

/** Refuses what would change the answer but is not supported. `taken`: names that the API does take. */
export function refuseUnsupported(body: object, taken?: ReadonlySet<string>): void {
  const fields = body as Record<string, unknown>;
  for (const name of UNSUPPORTED) {
    const value = fields[name];
    if (
      asked(value) &&
      taken?.has(name) !== true &&
      !((name === "length_penalty" || name === "best_of") && value === 1)
    )
      throw new UnsupportedError(`${name} is not supported`, { param: name });
  }
  refuseUnsupportedPrompt(body);
}

/** Refuses what would change the vectors of a text, or whose cache they go by, but is not supported. */
export function refuseLost(body: object): void {
  for (const name of ["lora_path", "cache_salt", "extra_key"] as const)
    if (asked((body as Record<string, unknown>)[name]))
      throw new UnsupportedError(`${name} is not supported`, { param: name });
}

/** Refuses what would change the prompt but is not supported. */
export function refuseUnsupportedPrompt(body: { readonly chat_template?: unknown }): void {
  if (asked(body.chat_template))
    throw new UnsupportedError("chat_template may not be set by a request", { param: "chat_template" });
}
