import { type Static, Type as t } from "@sinclair/typebox";
import { openAiSampling, streamFields, usageObject } from "../openai/schema.ts";
import { constraintFields, dispatchFields, int, maybe, nullable, samplingFields } from "../shared/sampling-fields.ts";

const anything = t.Unknown();
const object = t.Record(t.String(), t.Unknown());

const contentPart = t.Object({ type: t.String(), text: t.Optional(t.String()), refusal: t.Optional(t.String()) });

/** Arguments come as JSON text; some clients send the object itself. */
const calledFunction = t.Object({ name: t.String({ minLength: 1 }), arguments: maybe(t.Union([t.String(), object])) });
const toolCall = t.Object({
  id: maybe(t.String()),
  type: maybe(t.String()),
  function: maybe(calledFunction),
  custom: maybe(t.Object({ name: t.String({ minLength: 1 }), input: maybe(t.String()) })),
});

const message = t.Object({
  role: t.String({ description: "developer, system, user, assistant, tool or function" }),
  content: maybe(t.Union([t.String(), t.Array(contentPart)])),
  name: maybe(t.String()),
  refusal: maybe(t.String()),
  reasoning_content: maybe(t.String()),
  reasoning: maybe(t.String()),
  thinking: t.Optional(anything),
  tool_call_id: maybe(t.String()),
  tool_calls: maybe(t.Array(toolCall)),
  function_call: maybe(calledFunction),
});

/** OpenAI takes 64 characters without dots; tools of MCP servers have both. */
const toolName = t.String({ pattern: "^[a-zA-Z0-9_.-]{1,128}$" });
const functionTool = t.Object({
  name: toolName,
  description: maybe(t.String()),
  parameters: maybe(object),
  strict: maybe(t.Boolean()),
});
const tool = t.Object({
  type: t.String({ description: "function or custom" }),
  function: maybe(functionTool),
  custom: maybe(t.Object({ name: toolName, description: maybe(t.String()), format: maybe(object) })),
});
/** Far more than models cope with; OpenAI takes 128. */
const MAX_TOOLS = 1024;

/** What of a request its prompt comes from, besides the messages. */
export const promptFields = {
  tools: maybe(t.Array(tool, { maxItems: MAX_TOOLS })),
  tool_choice: maybe(
    t.Union([t.String(), object], {
      description: "none, auto, required, or an object of the type function, custom or allowed_tools",
    }),
  ),
  parallel_tool_calls: maybe(t.Boolean()),
  functions: maybe(t.Array(functionTool, { maxItems: MAX_TOOLS })),
  function_call: maybe(t.Union([t.String(), t.Object({ name: t.String() })])),
  reasoning_effort: maybe(t.Union([t.String(), t.Number()])),
  chat_template: maybe(t.String()),
  chat_template_kwargs: maybe(object),
  add_generation_prompt: maybe(t.Boolean()),
  continue_final_message: maybe(t.Union([t.Boolean(), t.String({ minLength: 1 })])),
  documents: maybe(t.Array(anything)),
  response_format: maybe(t.Object({ type: t.String() }, { additionalProperties: true })),
} as const;
export const messageList = t.Array(message, { minItems: 1 });

/**
 * Request of `POST /v1/chat/completions`: OpenAI's fields and the engines' extensions. Fields that are not listed are accepted
 * and ignored.
 */
export const chatRequest = t.Object(
  {
    model: t.String({ minLength: 1 }),
    messages: messageList,
    ...promptFields,
    ...streamFields,

    max_completion_tokens: maybe(int({ minimum: 1 })),
    max_tokens: maybe(int({ minimum: 1 })),
    n: maybe(int({ minimum: 1, maximum: 128 })),
    ...openAiSampling,
    logprobs: maybe(t.Boolean()),
    top_logprobs: maybe(int({ minimum: 0, maximum: 20 })),

    modalities: maybe(t.Array(t.String())),
    audio: maybe(anything),

    ...samplingFields,
    return_token_ids: maybe(t.Boolean()),
    separate_reasoning: maybe(t.Boolean({ description: "false: reasoning stays in the content, with its markers" })),
    include_reasoning: maybe(t.Boolean({ description: "false: reasoning is left out" })),
    return_tokens_as_token_ids: maybe(t.Boolean()),

    ...constraintFields,

    echo: maybe(t.Boolean()),

    ...dispatchFields,
  },
  { additionalProperties: true, description: "Fields that are not listed are accepted and ignored." },
);

export type ChatRequest = Static<typeof chatRequest>;
/** The fields that a prompt comes from. */
export type ConversationRequest = Pick<ChatRequest, "messages" | keyof typeof promptFields>;
export type ContentPart = Static<typeof contentPart>;
export type ChatMessage = Static<typeof message>;
export type ChatToolCall = Static<typeof toolCall>;
export type ChatTool = Static<typeof tool>;

const logprobEntry = t.Object({
  token: t.String(),
  logprob: t.Number(),
  bytes: nullable(t.Array(t.Integer())),
  top_logprobs: t.Array(t.Object({ token: t.String(), logprob: t.Number(), bytes: nullable(t.Array(t.Integer())) })),
});

const answeredCall = t.Object({
  id: t.String(),
  type: t.String({ description: "function or custom" }),
  function: t.Optional(t.Object({ name: t.String(), arguments: t.String({ description: "JSON text" }) })),
  custom: t.Optional(t.Object({ name: t.String(), input: t.String() })),
});

/** Answer of `POST /v1/chat/completions` without `stream`. */
export const chatResponse = t.Object({
  id: t.String(),
  object: t.Literal("chat.completion"),
  created: t.Integer({ description: "Unix time in seconds" }),
  model: t.String(),
  choices: t.Array(
    t.Object({
      index: t.Integer(),
      message: t.Object({
        role: t.Literal("assistant"),
        content: nullable(t.String()),
        refusal: nullable(t.String()),
        reasoning_content: t.Optional(t.String({ description: "or `reasoning`, by the setting reasoning-field" })),
        tool_calls: t.Optional(t.Array(answeredCall)),
        function_call: t.Optional(t.Object({ name: t.String(), arguments: t.String() })),
      }),
      logprobs: nullable(
        t.Object({ content: nullable(t.Array(logprobEntry)), refusal: nullable(t.Array(logprobEntry)) }),
      ),
      finish_reason: t.String(),
    }),
  ),
  usage: usageObject,
});
