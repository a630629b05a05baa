/** Anthropic's Messages: what is asked and what is answered. */
import { type Static, Type as t } from "@sinclair/typebox";
import { extensionFields, int, maybe, nullable } from "../shared/sampling-fields.ts";

const object = t.Record(t.String(), t.Unknown());
/** Blocks are checked by hand, so that errors name the field of the one kind that was meant. */
const content = t.Union([t.String(), t.Array(t.Object({ type: t.String() }, { additionalProperties: true }))]);

const effort = maybe(t.String({ description: "low, medium, high, xhigh or max" }));

const message = t.Object({
  role: t.String({ description: "user, assistant or system" }),
  content: maybe(content),
  clear_at: maybe(t.String({ description: "of a system message: next_user_message or never" })),
  output_config: maybe(t.Object({ effort })),
});

const outputFormat = t.Object({ type: t.String({ description: "json_schema" }), schema: t.Optional(object) });

/** What of a request its prompt comes from. */
const promptFields = {
  model: t.String({ minLength: 1 }),
  messages: t.Array(message, { minItems: 1 }),
  system: maybe(content),
  tools: maybe(t.Array(t.Object({ type: maybe(t.String()) }, { additionalProperties: true }), { maxItems: 1024 })),
  tool_choice: maybe(
    t.Object({
      type: t.String({ description: "auto, any, tool or none" }),
      name: maybe(t.String()),
      disable_parallel_tool_use: maybe(t.Boolean()),
    }),
  ),
  thinking: maybe(
    t.Object({
      type: t.String({ description: "enabled, disabled, adaptive or between_tools" }),
      budget_tokens: maybe(int({ minimum: 1024 })),
      display: maybe(t.String({ description: "omitted: signatures in the place of thoughts" })),
    }),
  ),
  output_config: maybe(
    t.Object({
      effort,
      format: maybe(outputFormat),
    }),
  ),
  output_format: maybe(outputFormat),
  mcp_servers: maybe(t.Array(t.Unknown())),
  context_management: maybe(object),
  thread: maybe(object),
  chat_template: maybe(t.String()),
  chat_template_kwargs: maybe(object),
} as const;

const LOOSE = {
  additionalProperties: true,
  description: "Fields that are not listed are accepted and ignored.",
} as const;

/** Request of `POST /v1/messages`: Anthropic's fields and the engines' extensions. */
export const messagesRequest = t.Object(
  {
    ...promptFields,
    max_tokens: int({ minimum: 1 }),
    stream: maybe(t.Boolean()),
    stop_sequences: maybe(t.Array(t.String({ minLength: 1 }), { maxItems: 64 })),
    temperature: maybe(t.Number({ minimum: 0, maximum: 1 })),
    top_p: maybe(t.Number({ exclusiveMinimum: 0, maximum: 1 })),
    ...extensionFields,
  },
  LOOSE,
);

/** Request of `POST /v1/messages/count_tokens`. */
export const countTokensRequest = t.Object(promptFields, LOOSE);

export type MessagesRequest = Static<typeof messagesRequest>;
export type CountTokensRequest = Static<typeof countTokensRequest>;
export type SentMessage = Static<typeof message>;
export type SentContent = Static<typeof content>;
/** A block of a message, of whatever type. */
export type SentBlock = Readonly<Record<string, unknown>> & { readonly type: string };

/** Answer of `POST /v1/messages` without `stream`. */
export const messagesResponse = t.Object({
  id: t.String(),
  type: t.Literal("message"),
  role: t.Literal("assistant"),
  model: t.String(),
  content: t.Array(t.Object({ type: t.String({ description: "text, thinking or tool_use" }) })),
  stop_reason: t.String({
    description: "end_turn, max_tokens, stop_sequence, tool_use or model_context_window_exceeded",
  }),
  stop_sequence: nullable(t.String()),
  usage: t.Object({
    input_tokens: t.Integer({ description: "without those that were read from the cache" }),
    cache_creation_input_tokens: t.Integer(),
    cache_read_input_tokens: t.Integer(),
    output_tokens: t.Integer(),
  }),
});

export const countTokensResponse = t.Object({ input_tokens: t.Integer() });
