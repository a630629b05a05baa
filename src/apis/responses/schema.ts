/** Requests and objects of Responses: shapes from OpenAI's published API document and the OpenResponses schema. */
import { type Static, Type as t } from "@sinclair/typebox";
import { extensionFields, int, maybe, nullable, stopStrings } from "../shared/sampling-fields.ts";

const anyObject = t.Object({}, { additionalProperties: true });

/** Far more than models cope with. */
const MAX_TOOLS = 1024;
/** A bound on the work for one request. */
const MAX_ITEMS = 100_000;

/** Of a request's fields those that decide on its prompt: `input_tokens` has the same. */
export const promptFields = {
  model: t.String({ minLength: 1 }),
  /** Items are read one by one: a union of their thirty types would cost more and tell less. */
  input: maybe(t.Union([t.String(), t.Array(anyObject, { maxItems: MAX_ITEMS })])),
  instructions: maybe(t.String()),
  previous_response_id: maybe(t.String({ minLength: 1 })),
  conversation: maybe(t.Union([t.String({ minLength: 1 }), t.Object({ id: t.String({ minLength: 1 }) })])),
  prompt: maybe(anyObject),
  tools: maybe(t.Array(anyObject, { maxItems: MAX_TOOLS })),
  tool_choice: maybe(
    t.Union([t.String(), anyObject], {
      description: "none, auto, required, or an object of the type function, custom or allowed_tools",
    }),
  ),
  parallel_tool_calls: maybe(t.Boolean()),
  reasoning: maybe(
    t.Object({
      effort: maybe(t.Union([t.String(), t.Number()])),
      summary: maybe(t.String({ description: "auto, concise or detailed: reasoning is told as its own summary" })),
      generate_summary: maybe(t.String()),
    }),
  ),
  text: maybe(
    t.Object({
      format: maybe(t.Object({ type: t.String() }, { additionalProperties: true })),
      verbosity: maybe(t.String()),
    }),
  ),
  truncation: maybe(t.Union([t.Literal("auto"), t.Literal("disabled")])),
} as const;

const metadata = t.Record(t.String({ maxLength: 64 }), t.String({ maxLength: 512 }), { maxProperties: 16 });

/** Fields of `POST /v1/responses` that are OpenAI's own. */
const responseFields = {
  ...promptFields,
  stream: maybe(t.Boolean()),
  stream_options: maybe(t.Object({ include_obfuscation: maybe(t.Boolean()) })),
  store: maybe(t.Boolean()),
  background: maybe(t.Boolean()),
  include: maybe(t.Array(t.String())),
  max_output_tokens: maybe(int({ minimum: 1 })),
  max_tool_calls: maybe(int({ minimum: 1 })),
  temperature: maybe(t.Number({ minimum: 0, maximum: 2 })),
  top_p: maybe(t.Number({ exclusiveMinimum: 0, maximum: 1 })),
  top_logprobs: maybe(int({ minimum: 0, maximum: 20 })),
  metadata: maybe(metadata),
  service_tier: maybe(t.String()),
  safety_identifier: maybe(t.String()),
  prompt_cache_key: maybe(t.String()),
  user: maybe(t.String()),
} as const;

/** As in Chat Completions; OpenAI's Responses has none of them. */
const chatFields = {
  stop: stopStrings,
  chat_template_kwargs: maybe(t.Record(t.String(), t.Unknown())),
  return_tokens_as_token_ids: maybe(t.Boolean()),
} as const;

/** Request of `POST /v1/responses`. Fields that are not listed are accepted and ignored. */
export const responsesRequest = t.Object(
  { ...responseFields, ...extensionFields, ...chatFields },
  { additionalProperties: true },
);
export type ResponsesRequest = Static<typeof responsesRequest>;

/** What of a request its prompt comes from. */
export type PromptRequest = Pick<ResponsesRequest, keyof typeof promptFields>;

/** An item of an input, a tool, or a part of content: nothing is known of it. */
export type Loose = Readonly<Record<string, unknown>>;

export const responseUsage = t.Object({
  input_tokens: t.Integer(),
  input_tokens_details: t.Object({ cached_tokens: t.Integer(), cache_write_tokens: t.Integer() }),
  output_tokens: t.Integer(),
  output_tokens_details: t.Object({ reasoning_tokens: t.Integer() }),
  total_tokens: t.Integer(),
});

/** The answer of `POST /v1/responses` without `stream`, for the API document. All keys are always there. */
export const responseObject = t.Object({
  id: t.String(),
  object: t.Literal("response"),
  created_at: t.Integer({ description: "Unix time in seconds" }),
  completed_at: nullable(t.Integer()),
  status: t.String({ description: "completed, incomplete, failed, in_progress, queued or cancelled" }),
  error: nullable(t.Object({ code: t.String(), message: t.String() })),
  incomplete_details: nullable(t.Object({ reason: t.String() })),
  instructions: nullable(t.String()),
  model: t.String(),
  output: t.Array(t.Object({ id: t.String(), type: t.String() }, { additionalProperties: true })),
  previous_response_id: nullable(t.String()),
  conversation: nullable(t.Object({ id: t.String() })),
  tools: t.Array(t.Object({ type: t.String() }, { additionalProperties: true })),
  tool_choice: t.Union([t.String(), t.Object({ type: t.String() }, { additionalProperties: true })]),
  parallel_tool_calls: t.Boolean(),
  truncation: t.String(),
  text: t.Object({ format: t.Object({ type: t.String() }, { additionalProperties: true }) }),
  reasoning: t.Object({ effort: nullable(t.Union([t.String(), t.Number()])), summary: nullable(t.String()) }),
  temperature: t.Number(),
  top_p: t.Number(),
  presence_penalty: t.Number(),
  frequency_penalty: t.Number(),
  top_logprobs: t.Integer(),
  max_output_tokens: nullable(t.Integer()),
  max_tool_calls: nullable(t.Integer()),
  store: t.Boolean(),
  background: t.Boolean(),
  service_tier: t.String(),
  metadata: t.Record(t.String(), t.String()),
  safety_identifier: nullable(t.String()),
  prompt_cache_key: nullable(t.String()),
  user: nullable(t.String()),
  usage: nullable(responseUsage),
});
