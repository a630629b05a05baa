import { InvalidRequestError } from "../errors.ts";
import type { Value } from "./engine/values.ts";
import { plainValue } from "./plain-value.ts";

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
export function messageValue(message: MessageData): PreparedMessage {
  const value = plainValue(message);
  if (!(value instanceof Map)) throw new InvalidRequestError("A message must be an object", { param: "messages" });
  return value as PreparedMessage;
}

/**
 * Messages as transformers (5.24) hands them to a template: keys whose value is null are dropped (at the top level only), and reasoning is
 * there as `reasoning_content` and as `thinking`, whichever of the names it came under.
 * `keepNullContent`: for templates that write tool calls only where content is none (`ChatTemplate.needsNullContent`); transformers
 * itself loses the calls there. Throws InvalidRequestError when there is no message.
 */
export function prepareMessages(
  messages: readonly MessageData[],
  options: { readonly keepNullContent?: boolean } = {},
): PreparedMessage[] {
  if (messages.length === 0) throw new InvalidRequestError("There must be at least one message", { param: "messages" });
  return messages.map((given) => {
    const message = messageValue(given);
    const keepContent = options.keepNullContent === true && hasCalls(message);
    const kept = new Map<string, Value>();
    for (const [key, value] of message) if (value !== null || (keepContent && key === "content")) kept.set(key, value);
    return withReasoning(kept);
  });
}

function withReasoning(message: PreparedMessage): PreparedMessage {
  const name = REASONING_FIELDS.find((field) => message.has(field));
  const reasoning = name === undefined ? undefined : message.get(name);
  if (reasoning === undefined) return message;
  return new Map<string, Value>([["thinking", reasoning], ...message]).set("reasoning_content", reasoning);
}
