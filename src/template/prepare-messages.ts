import { InvalidRequestError } from "../errors.ts";
import { atOnce, PIECE_ITEMS, type Steps } from "../steps.ts";
import { isSmall } from "./engine/json-steps.ts";
import type { Value } from "./engine/values.ts";
import { plainSteps, plainValue } from "./plain-value.ts";

/** A message: a plain object, or a Map as `parseLossless` gives it. */
export type MessageData = Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>;
/** A message as templates see it. */
export type PreparedMessage = ReadonlyMap<string, Value>;

/** Names of a message's reasoning. The first one that is set counts; templates read the first two. */
export const REASONING_FIELDS = ["reasoning_content", "thinking", "reasoning"] as const;

const hasCalls = (message: PreparedMessage): boolean => {
  const calls = message.get("tool_calls");
  return Array.isArray(calls) && calls.length > 0;
};

/** A message as it is. Throws InvalidRequestError when it is no object. */
export const messageValue = (message: MessageData): PreparedMessage => checkedMessage(plainValue(message));

/** The same in steps. */
export function* messageSteps(message: MessageData): Steps<PreparedMessage> {
  return checkedMessage(yield* plainSteps(message));
}

function checkedMessage(value: Value): PreparedMessage {
  if (!(value instanceof Map)) throw new InvalidRequestError("A message must be an object", { param: "messages" });
  return value as PreparedMessage;
}

/**
 * Messages as transformers (5.24) hands them to a template: keys whose value is null are dropped (at the top level only), and reasoning is
 * there as `reasoning_content` and as `thinking`, whichever of the names it came under.
 * `keepNullContent`: for templates that write tool calls only where content is none (`ChatTemplate.needsNullContent`); transformers
 * itself loses the calls there. Throws InvalidRequestError when there is no message.
 */
export const prepareMessages = (messages: readonly MessageData[], options: PrepareOptions = {}): PreparedMessage[] =>
  atOnce(prepareMessagesSteps(messages, options));

interface PrepareOptions {
  readonly keepNullContent?: boolean;
}

/** The same in steps. */
export function* prepareMessagesSteps(
  messages: readonly MessageData[],
  { keepNullContent = false }: PrepareOptions,
): Steps<PreparedMessage[]> {
  if (messages.length === 0) throw new InvalidRequestError("There must be at least one message", { param: "messages" });
  const prepared: PreparedMessage[] = [];
  for (const given of messages) {
    if (prepared.length % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
    const message = hasLongList(given) ? yield* messageSteps(given) : messageValue(given);
    const keepContent = keepNullContent && hasCalls(message);
    const kept = new Map<string, Value>();
    for (const [key, value] of message) if (value !== null || (keepContent && key === "content")) kept.set(key, value);
    prepared.push(withReasoning(kept));
  }
  return prepared;
}

/** Has it so many calls or parts, or so large ones, that they take more than one piece? */
function hasLongList(message: MessageData): boolean {
  const isMap = message instanceof Map;
  const { content, tool_calls: calls } = (isMap ? {} : message) as Readonly<Record<string, unknown>>;
  return isMap || isLongList(content) || isLongList(calls) || (calls !== undefined && !isSmall(calls));
}

const isLongList = (value: unknown): boolean => Array.isArray(value) && value.length > PIECE_ITEMS;

function withReasoning(message: PreparedMessage): PreparedMessage {
  const name = REASONING_FIELDS.find((field) => message.has(field));
  const reasoning = name === undefined ? undefined : message.get(name);
  if (reasoning === undefined) return message;
  return new Map<string, Value>([["thinking", reasoning], ...message]).set("reasoning_content", reasoning);
}
