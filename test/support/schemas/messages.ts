/**
 * Schemas of all that Messages answers, and the order of a stream's events, from the reference and the types of @anthropic-ai/sdk 1.14.0.
 * Members that the SDK lists as always there must be there, null where there is nothing; others are not known here and fail.
 */
import { type TSchema, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

const closed = <P extends Record<string, TSchema>>(properties: P) =>
  t.Object(properties, { additionalProperties: false });
const nullable = <S extends TSchema>(schema: S) => t.Union([schema, t.Null()]);
const count = t.Integer({ minimum: 0 });
const NULL = t.Null();

const details = closed({ thinking_tokens: count });
const inputs = { input_tokens: count, cache_creation_input_tokens: count, cache_read_input_tokens: count };
export const usage = closed({
  ...inputs,
  cache_creation: NULL,
  output_tokens: count,
  output_tokens_details: nullable(details),
  server_tool_use: NULL,
  service_tier: t.Literal("standard"),
  inference_geo: NULL,
  speed: NULL,
});
export const deltaUsage = closed({
  ...inputs,
  output_tokens: count,
  output_tokens_details: details,
  server_tool_use: NULL,
});

const caller = closed({ type: t.Literal("direct") });
const toolUseId = t.String({ pattern: "^toolu_[0-9a-f]{50}$" });
const textBlock = closed({ type: t.Literal("text"), text: t.String({ minLength: 1 }), citations: NULL });
const thinkingBlock = closed({
  type: t.Literal("thinking"),
  thinking: t.String(),
  signature: t.String({ pattern: "^[es]1\\.[A-Za-z0-9_-]+$" }),
});
const toolUseBlock = closed({
  type: t.Literal("tool_use"),
  id: toolUseId,
  name: t.String({ minLength: 1 }),
  input: t.Record(t.String(), t.Unknown()),
  caller,
});

const messageFields = {
  id: t.String({ pattern: "^msg_[0-9a-f]{50}$" }),
  type: t.Literal("message"),
  role: t.Literal("assistant"),
  model: t.String({ minLength: 1 }),
  stop_details: NULL,
  container: NULL,
  diagnostics: NULL,
  context_management: t.Optional(closed({ applied_edits: t.Tuple([]) })),
  usage,
};
const plainStop = t.Union(
  ["end_turn", "max_tokens", "tool_use", "model_context_window_exceeded"].map((reason) => t.Literal(reason)),
);
/** `stop_sequence` has a value with the reason of that name only. */
const stopped = <P extends Record<string, TSchema>>(fields: P) =>
  t.Union([
    closed({ ...fields, stop_reason: plainStop, stop_sequence: NULL }),
    closed({ ...fields, stop_reason: t.Literal("stop_sequence"), stop_sequence: t.String({ minLength: 1 }) }),
  ]);
const blocks = t.Array(t.Union([textBlock, thinkingBlock, toolUseBlock]));
export const message = stopped({ ...messageFields, content: blocks });

const startedMessage = closed({
  ...messageFields,
  content: t.Tuple([]),
  stop_reason: NULL,
  stop_sequence: NULL,
});
const openBlock = t.Union([
  closed({ type: t.Literal("text"), text: t.Literal(""), citations: NULL }),
  closed({ type: t.Literal("thinking"), thinking: t.Literal(""), signature: t.Literal("") }),
  closed({ type: t.Literal("tool_use"), id: toolUseId, name: t.String({ minLength: 1 }), input: closed({}), caller }),
]);
const delta = t.Union([
  closed({ type: t.Literal("text_delta"), text: t.String({ minLength: 1 }) }),
  closed({ type: t.Literal("thinking_delta"), thinking: t.String({ minLength: 1 }) }),
  closed({ type: t.Literal("signature_delta"), signature: thinkingBlock.properties.signature }),
  closed({ type: t.Literal("input_json_delta"), partial_json: t.String({ minLength: 1 }) }),
]);

export const error = closed({
  type: t.Literal("error"),
  error: closed({
    type: t.String({ pattern: "_error$|^request_too_large$" }),
    message: t.String({ minLength: 1 }),
    details: t.Optional(closed({ error_code: t.String(), unsupported: t.Array(t.String()) })),
  }),
  request_id: t.String({ minLength: 1 }),
});
export const tokensCount = closed({
  input_tokens: t.Integer({ minimum: 1 }),
  context_management: t.Optional(closed({ original_input_tokens: count })),
});

const index = count;
const EVENTS: Readonly<Record<string, TSchema>> = {
  message_start: closed({ type: t.Literal("message_start"), message: startedMessage }),
  ping: closed({ type: t.Literal("ping") }),
  content_block_start: closed({ type: t.Literal("content_block_start"), index, content_block: openBlock }),
  content_block_delta: closed({ type: t.Literal("content_block_delta"), index, delta }),
  content_block_stop: closed({ type: t.Literal("content_block_stop"), index }),
  message_delta: closed({
    type: t.Literal("message_delta"),
    delta: stopped({ stop_details: NULL, container: NULL }),
    usage: deltaUsage,
    context_management: t.Optional(closed({ applied_edits: t.Tuple([]) })),
  }),
  message_stop: closed({ type: t.Literal("message_stop") }),
  error,
};

/** Throws unless the value is of the schema, with the first thing that is wrong. */
export function check(schema: TSchema, value: unknown, what = "value"): void {
  const [problem] = [...Value.Errors(schema, value)];
  if (problem !== undefined)
    throw new Error(`${what}: ${problem.path} ${problem.message}\n${JSON.stringify(value).slice(0, 500)}`);
}

export interface Event {
  readonly type: string;
  readonly [field: string]: unknown;
}

interface Block {
  type: string;
  [field: string]: unknown;
}

export interface FoldedMessage {
  readonly id: string;
  readonly content: Block[];
  stop_reason: string | null;
  stop_sequence: string | null;
  usage: Record<string, unknown>;
  /** The error that ended the stream. */
  error?: { readonly type: string; readonly message: string };
}

/** Frames of a stream: each has one event line, one data line that repeats its name, and an empty one. Comments are passed over. */
export function readEvents(text: string): Event[] {
  if (text !== "" && !text.endsWith("\n\n")) throw new Error(`the stream ends within a frame: ${text.slice(-80)}`);
  return text
    .split("\n\n")
    .filter((frame) => frame !== "" && !frame.startsWith(":"))
    .map((frame) => {
      const match = /^event: (\S+)\ndata: (.*)$/.exec(frame);
      if (match === null) throw new Error(`no frame of an event: ${frame}`);
      const event = JSON.parse(match[2]!) as Event;
      if (event.type !== match[1]) throw new Error(`event ${match[1]} holds ${event.type}`);
      return event;
    });
}

const KIND: Readonly<Record<string, string>> = {
  text_delta: "text",
  thinking_delta: "thinking",
  signature_delta: "thinking",
  input_json_delta: "tool_use",
};

/**
 * The message that a stream tells. Throws where an event has not its schema, or comes out of turn:
 * message_start, then blocks with the indexes 0, 1, … that do not overlap, each with start, deltas of its kind and stop, a block of
 * thinking with one signature as its last delta, then message_delta and message_stop; or an error anywhere behind the start.
 */
export function foldStream(events: readonly Event[]): FoldedMessage {
  let message: FoldedMessage | undefined;
  let open: { block: Block; json: string; signed: boolean } | undefined;
  let state: "new" | "blocks" | "ending" | "over" = "new";
  const must = (holds: boolean, event: Event, why: string) => {
    if (!holds) throw new Error(`${why}: ${JSON.stringify(event)}`);
  };
  for (const event of events) {
    const schema = EVENTS[event.type];
    if (schema === undefined) throw new Error(`unknown event ${event.type}`);
    check(schema, event, event.type);
    must(state !== "over", event, "something follows the end");
    if (event.type === "ping") continue;
    if (event.type === "message_start") {
      must(state === "new", event, "a second start");
      message = structuredClone(event["message"]) as FoldedMessage;
      state = "blocks";
      continue;
    }
    if (message === undefined) throw new Error(`${event.type} before message_start`);
    switch (event.type) {
      case "content_block_start":
        must(state === "blocks" && open === undefined, event, "no place for a block");
        must(event["index"] === message.content.length, event, "a gap in the indexes");
        open = { block: structuredClone(event["content_block"]) as Block, json: "", signed: false };
        message.content.push(open.block);
        break;
      case "content_block_delta": {
        const change = event["delta"] as Record<string, string>;
        must(open !== undefined && event["index"] === message.content.length - 1, event, "no open block");
        must(open?.block.type === KIND[change["type"]!], event, "a delta of another kind");
        must(open?.signed === false, event, "something follows the signature");
        apply(open!, change);
        break;
      }
      case "content_block_stop":
        must(open !== undefined && event["index"] === message.content.length - 1, event, "no open block");
        must(open!.block.type !== "thinking" || open!.signed, event, "thinking without a signature");
        finish(open!);
        open = undefined;
        break;
      case "message_delta": {
        must(state === "blocks" && open === undefined, event, "an end within a block");
        Object.assign(message, event["delta"]);
        Object.assign(message.usage, event["usage"]);
        state = "ending";
        break;
      }
      case "message_stop":
        must(state === "ending", event, "a stop without message_delta");
        state = "over";
        break;
      case "error":
        must(state === "blocks", event, "an error behind the end");
        message.error = event["error"] as FoldedMessage["error"] & object;
        state = "over";
    }
  }
  if (message === undefined || state !== "over") throw new Error("the stream has no end");
  return message;
}

function apply(open: { block: Block; json: string; signed: boolean }, change: Record<string, string>): void {
  const { block } = open;
  if (change["type"] === "text_delta") block["text"] = `${block["text"]}${change["text"]}`;
  else if (change["type"] === "thinking_delta") block["thinking"] = `${block["thinking"]}${change["thinking"]}`;
  else if (change["type"] === "signature_delta") {
    block["signature"] = change["signature"];
    open.signed = true;
  } else open.json += change["partial_json"];
}

/** The deltas of a call are one JSON object, or nothing; of one that was cut they are what there is. */
function finish({ block, json }: { block: Block; json: string }): void {
  if (block.type !== "tool_use" || json === "") return;
  try {
    block["input"] = JSON.parse(json);
  } catch {
    block["partial_json"] = json;
  }
}

const time = t.String({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$" });
const counts = closed({ processing: count, succeeded: count, errored: count, canceled: count, expired: count });
const batchFields = {
  id: t.String({ pattern: "^msgbatch_[0-9a-f]{50}$" }),
  type: t.Literal("message_batch"),
  request_counts: counts,
  created_at: time,
  expires_at: time,
  archived_at: NULL,
};
/** A batch: one that is not over has neither an end nor results. */
export const batch = t.Union([
  closed({
    ...batchFields,
    processing_status: t.Literal("in_progress"),
    ended_at: NULL,
    cancel_initiated_at: NULL,
    results_url: NULL,
  }),
  closed({
    ...batchFields,
    processing_status: t.Literal("canceling"),
    ended_at: NULL,
    cancel_initiated_at: time,
    results_url: NULL,
  }),
  closed({
    ...batchFields,
    processing_status: t.Literal("ended"),
    ended_at: time,
    cancel_initiated_at: nullable(time),
    results_url: t.String({ pattern: "^http" }),
  }),
]);
export const batchResult = closed({
  custom_id: t.String({ minLength: 1 }),
  result: t.Union([
    closed({ type: t.Literal("succeeded"), message }),
    closed({ type: t.Literal("errored"), error }),
    closed({ type: t.Literal("canceled") }),
    closed({ type: t.Literal("expired") }),
  ]),
});
const page = (of: TSchema) =>
  closed({ data: t.Array(of), has_more: t.Boolean(), first_id: nullable(t.String()), last_id: nullable(t.String()) });
export const batchPage = page(batch);
export const deletedBatch = closed({ id: batchFields.id, type: t.Literal("message_batch_deleted") });

export const modelInfo = closed({
  type: t.Literal("model"),
  id: t.String({ minLength: 1 }),
  display_name: t.String({ minLength: 1 }),
  created_at: time,
  max_input_tokens: nullable(count),
  max_tokens: nullable(count),
  lifecycle: t.Literal("active"),
  capabilities: NULL,
  line: NULL,
  deprecated_at: NULL,
  retires_at: NULL,
});
export const modelPage = page(modelInfo);
