/** Google's Interactions in their `steps` schema: what is asked and what is answered. Shapes: the types of @google/genai 3.3. */
import { type Static, Type as t } from "@sinclair/typebox";
import { extensionFields, int, maybe } from "../shared/sampling-fields.ts";

const anyObject = t.Object({}, { additionalProperties: true });

/** Bounds on the work for one request. */
const MAX_TOOLS = 1024;
const MAX_STEPS = 100_000;

const generationConfig = t.Object(
  {
    temperature: maybe(t.Number({ minimum: 0, maximum: 2 })),
    top_p: maybe(t.Number({ exclusiveMinimum: 0, maximum: 1 })),
    stop_sequences: maybe(t.Array(t.String({ minLength: 1 }), { maxItems: 64 })),
    max_output_tokens: maybe(int({ minimum: 1 })),
    thinking_level: maybe(t.String({ description: "minimal, low, medium, high or xhigh" })),
    thinking_summaries: maybe(t.String({ description: "auto, or none: thoughts come as their signature alone" })),
    tool_choice: maybe(
      t.Union([t.String(), anyObject], {
        description: "auto, any, none, validated, or {allowed_tools: {mode, tools}}",
      }),
    ),
    chat_template_kwargs: maybe(t.Record(t.String(), t.Unknown())),
    ...extensionFields,
  },
  { additionalProperties: true },
);

/** Request of `POST /v1beta/interactions`. Fields that are not listed are accepted and ignored. */
export const interactionsRequest = t.Object(
  {
    model: maybe(t.String({ minLength: 1 })),
    agent: maybe(t.String()),
    /** Steps and contents are read one by one: a union of their thirty types would cost more and tell less. */
    input: maybe(t.Union([t.String(), anyObject, t.Array(anyObject, { maxItems: MAX_STEPS })])),
    system_instruction: maybe(t.String()),
    tools: maybe(t.Array(anyObject, { maxItems: MAX_TOOLS })),
    generation_config: maybe(generationConfig),
    response_format: maybe(t.Union([anyObject, t.Array(anyObject, { maxItems: 16 })])),
    response_mime_type: maybe(t.String()),
    response_modalities: maybe(t.Array(t.String())),
    previous_interaction_id: maybe(t.String({ minLength: 1 })),
    store: maybe(t.Boolean()),
    stream: maybe(t.Boolean()),
    background: maybe(t.Boolean()),
    service_tier: maybe(t.String()),
    cached_content: maybe(t.String()),
    continuation_token: maybe(t.String()),
    labels: maybe(t.Record(t.String(), t.String())),
    chat_template_kwargs: maybe(t.Record(t.String(), t.Unknown())),
    ...extensionFields,
  },
  { additionalProperties: true },
);
export type InteractionsRequest = Static<typeof interactionsRequest>;
export type GenerationConfig = Static<typeof generationConfig>;

/** A step, content, tool or format: nothing is known of it. */
export type Loose = Readonly<Record<string, unknown>>;

const modality = t.Object({ modality: t.String(), tokens: t.Integer() });

/** The answer of `POST /v1beta/interactions` without `stream`, for the API document. */
export const interactionObject = t.Object({
  id: t.String({ description: "empty where nothing is stored" }),
  object: t.Literal("interaction"),
  status: t.String({ description: "completed, requires_action, incomplete, failed, cancelled or in_progress" }),
  model: t.String(),
  created: t.String({ description: "RFC 3339" }),
  updated: t.String({ description: "RFC 3339" }),
  service_tier: t.String(),
  steps: t.Array(t.Object({ type: t.String({ description: "model_output, thought or function_call" }) })),
  usage: t.Optional(
    t.Object({
      total_input_tokens: t.Integer(),
      input_tokens_by_modality: t.Array(modality),
      total_cached_tokens: t.Integer(),
      cached_tokens_by_modality: t.Array(modality),
      total_output_tokens: t.Integer({ description: "without those of thoughts" }),
      output_tokens_by_modality: t.Array(modality),
      total_tool_use_tokens: t.Integer(),
      tool_use_tokens_by_modality: t.Array(modality),
      total_thought_tokens: t.Integer(),
      total_tokens: t.Integer(),
    }),
  ),
  errors: t.Optional(t.Array(t.Object({ code: t.String(), message: t.String() }))),
});
