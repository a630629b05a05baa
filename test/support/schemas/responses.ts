/**
 * What OpenResponses and OpenAI's published API document say of Responses: each object and event by its required members. Every object is
 * closed: a member that is not named here is a mistake.
 */
import { type TSchema, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

const closed = <P extends Record<string, TSchema>>(properties: P) =>
  t.Object(properties, { additionalProperties: false });
const nullable = <S extends TSchema>(schema: S) => t.Union([schema, t.Null()]);
const count = t.Integer({ minimum: 0 });
const unixTime = t.Integer({ minimum: 1_600_000_000, maximum: 4_000_000_000 });
const id = (prefix: string) => t.String({ pattern: `^${prefix}[0-9a-f]{50}$` });
const itemStatus = t.Union([t.Literal("in_progress"), t.Literal("completed"), t.Literal("incomplete")]);

const tokenLogprob = {
  token: t.String(),
  logprob: t.Number(),
  bytes: t.Array(t.Integer({ minimum: 0, maximum: 255 })),
};
const logprob = closed({ ...tokenLogprob, top_logprobs: t.Array(closed(tokenLogprob)) });

export const outputText = closed({
  type: t.Literal("output_text"),
  text: t.String(),
  annotations: t.Array(t.Never()),
  logprobs: t.Array(logprob),
});
const reasoningText = closed({ type: t.Literal("reasoning_text"), text: t.String() });
const summaryText = closed({ type: t.Literal("summary_text"), text: t.String() });

const messageItem = closed({
  id: id("msg_"),
  type: t.Literal("message"),
  status: itemStatus,
  role: t.Literal("assistant"),
  content: t.Array(outputText),
});
const reasoningItem = closed({
  id: id("rs_"),
  type: t.Literal("reasoning"),
  status: itemStatus,
  summary: t.Array(summaryText),
  content: t.Optional(t.Array(reasoningText)),
  encrypted_content: t.Optional(t.String({ minLength: 1 })),
});
const callFields = {
  status: itemStatus,
  call_id: t.String({ minLength: 1 }),
  name: t.String({ minLength: 1 }),
  namespace: t.Optional(t.String({ minLength: 1 })),
};
const functionCall = closed({ id: id("fc_"), type: t.Literal("function_call"), ...callFields, arguments: t.String() });
const customCall = closed({ id: id("ctc_"), type: t.Literal("custom_tool_call"), ...callFields, input: t.String() });

export const outputItem = t.Union([messageItem, reasoningItem, functionCall, customCall]);

export const usageSchema = closed({
  input_tokens: count,
  input_tokens_details: closed({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: count,
  output_tokens_details: closed({ reasoning_tokens: count }),
  total_tokens: count,
});

const typed = t.Object({ type: t.String() }, { additionalProperties: true });

/** Of functions all keys are there. */
const shownTool = t.Union([
  t.Object({
    type: t.Literal("function"),
    name: t.String(),
    description: nullable(t.String()),
    parameters: nullable(t.Object({}, { additionalProperties: true })),
    strict: nullable(t.Boolean()),
  }),
  t.Object({ type: t.String({ pattern: "^(?!function$)" }) }, { additionalProperties: true }),
]);

const responseErrorSchema = closed({
  code: t.Union([t.Literal("server_error"), t.Literal("rate_limit_exceeded"), t.Literal("invalid_prompt")]),
  message: t.String({ minLength: 1 }),
});

/** Every key is required. */
export const responseSchema = closed({
  id: id("resp_"),
  object: t.Literal("response"),
  created_at: unixTime,
  completed_at: nullable(unixTime),
  status: t.Union(
    ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"].map((word) => t.Literal(word)),
  ),
  error: nullable(responseErrorSchema),
  incomplete_details: nullable(closed({ reason: t.Literal("max_output_tokens") })),
  instructions: nullable(t.String()),
  model: t.String({ minLength: 1 }),
  output: t.Array(outputItem),
  previous_response_id: nullable(t.String()),
  conversation: nullable(closed({ id: t.String() })),
  tools: t.Array(shownTool),
  tool_choice: t.Union([t.Literal("none"), t.Literal("auto"), t.Literal("required"), typed]),
  parallel_tool_calls: t.Boolean(),
  truncation: t.Union([t.Literal("auto"), t.Literal("disabled")]),
  text: closed({ format: typed, verbosity: t.Optional(t.String()) }),
  reasoning: closed({ effort: nullable(t.Union([t.String(), t.Number()])), summary: nullable(t.String()) }),
  temperature: t.Number(),
  top_p: t.Number(),
  presence_penalty: t.Number(),
  frequency_penalty: t.Number(),
  top_logprobs: count,
  max_output_tokens: nullable(count),
  max_tool_calls: nullable(count),
  store: t.Boolean(),
  background: t.Boolean(),
  service_tier: t.String(),
  metadata: t.Record(t.String(), t.String()),
  safety_identifier: nullable(t.String()),
  prompt_cache_key: nullable(t.String()),
  user: nullable(t.String()),
  usage: nullable(usageSchema),
});

const event = <P extends Record<string, TSchema>>(type: string, properties: P) =>
  closed({ type: t.Literal(type), sequence_number: count, ...properties });
const lifecycle = (name: string) => event(`response.${name}`, { response: responseSchema });
const place = { item_id: t.String({ minLength: 1 }), output_index: count };
const content = { ...place, content_index: t.Literal(0) };
const summary = { ...place, summary_index: t.Literal(0) };
const part = t.Union([outputText, reasoningText]);

/** Each event by its type. Any other type is a mistake. */
export const eventSchemas: Readonly<Record<string, TSchema>> = Object.fromEntries(
  [
    ...["created", "queued", "in_progress", "completed", "incomplete", "failed"].map(lifecycle),
    event("response.output_item.added", { output_index: count, item: outputItem }),
    event("response.output_item.done", { output_index: count, item: outputItem }),
    event("response.content_part.added", { ...content, part }),
    event("response.content_part.done", { ...content, part }),
    event("response.output_text.delta", { ...content, delta: t.String({ minLength: 1 }), logprobs: t.Array(logprob) }),
    event("response.output_text.done", { ...content, text: t.String(), logprobs: t.Array(logprob) }),
    event("response.reasoning_text.delta", { ...content, delta: t.String({ minLength: 1 }) }),
    event("response.reasoning_text.done", { ...content, text: t.String() }),
    event("response.reasoning_summary_part.added", { ...summary, part: summaryText }),
    event("response.reasoning_summary_part.done", { ...summary, part: summaryText }),
    event("response.reasoning_summary_text.delta", { ...summary, delta: t.String({ minLength: 1 }) }),
    event("response.reasoning_summary_text.done", { ...summary, text: t.String() }),
    event("response.function_call_arguments.delta", { ...place, delta: t.String({ minLength: 1 }) }),
    event("response.function_call_arguments.done", { ...place, arguments: t.String(), name: t.String() }),
    event("response.custom_tool_call_input.delta", { ...place, delta: t.String({ minLength: 1 }) }),
    event("response.custom_tool_call_input.done", { ...place, input: t.String() }),
    event("error", { code: nullable(t.String()), message: t.String(), param: nullable(t.String()) }),
  ].map((schema) => [schema.properties.type.const as string, schema]),
);

/** Throws with the first thing that is wrong. */
export function check(schema: TSchema, value: unknown, what: string): void {
  const problem = Value.Errors(schema, value).First();
  if (problem === undefined) return;
  throw new Error(`${what}: ${problem.path} ${problem.message}, in ${JSON.stringify(value)?.slice(0, 2000)}`);
}

export interface ResponseItem {
  readonly id: string;
  readonly type: string;
  readonly status: string;
  readonly [member: string]: unknown;
}

export interface ResponseBody {
  readonly id: string;
  readonly status: string;
  readonly output: readonly ResponseItem[];
  readonly usage: Readonly<Record<string, unknown>> | null;
  readonly [member: string]: unknown;
}

export interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly output_index?: number;
  readonly item_id?: string;
  readonly item?: ResponseItem;
  readonly part?: { readonly type: string; readonly text: string; readonly logprobs?: readonly unknown[] };
  readonly delta?: string;
  readonly logprobs?: readonly unknown[];
  readonly response?: ResponseBody;
  readonly [member: string]: unknown;
}

/** Checks a whole response object: its members, and how status, items and the rest go together. */
export function checkResponse(value: unknown): asserts value is ResponseBody {
  check(responseSchema, value, "the response");
  const body = value as ResponseBody;
  const { status, output } = body;
  const terminal = ["completed", "incomplete", "failed", "cancelled"].includes(status);
  const expected: Record<string, boolean> = {
    completed_at: status === "completed",
    error: status === "failed",
  };
  for (const [member, isThere] of Object.entries(expected))
    if ((body[member] !== null) !== isThere)
      throw new Error(`${member} is ${JSON.stringify(body[member])} in ${status}`);
  if (status === "completed" && body.usage === null) throw new Error("a completed response has no usage");
  if (body.usage !== null && !terminal) throw new Error("usage is told before the end");
  if (body["incomplete_details"] !== null && status !== "incomplete")
    throw new Error("incomplete_details where nothing is");
  output.forEach((item, i) => {
    if (item.status === "in_progress") throw new Error(`item ${i} of a response is in progress`);
    if (status === "completed" && item.status !== "completed" && !isCall(item))
      throw new Error(`item ${i} is ${item.status}`);
    if (status === "incomplete" && item.status === "incomplete" && i !== output.length - 1 && !isCall(item))
      throw new Error("something follows an incomplete item");
  });
  const ids = output.map(({ id: own }) => own);
  if (new Set(ids).size !== ids.length) throw new Error("an id comes twice");
}

const isCall = ({ type }: ResponseItem): boolean => type === "function_call" || type === "custom_tool_call";
