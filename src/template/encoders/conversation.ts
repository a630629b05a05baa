/** What all native encoders share: the conversation they read, and the shell that makes a chat template of an encoder. */
import { InvalidRequestError } from "../../errors.ts";
import { type ChatTemplate, ChatTemplateRefusal, type TemplateInput } from "../chat-template.ts";
import { continueFinal } from "../continue-message.ts";
import { refill } from "../engine/limits.ts";
import type { Value } from "../engine/values.ts";
import { ChatTemplateError } from "../errors.ts";
import { plainValue } from "../plain-value.ts";
import { messageValue, type PreparedMessage, REASONING_FIELDS } from "../prepare-messages.ts";

/** A conversation in the engine's values. */
export interface Conversation {
  readonly messages: readonly PreparedMessage[];
  /** As the request has them; empty when there are none. */
  readonly tools: readonly Value[];
  /** `chat_template_kwargs` and what the gateway adds to them. */
  readonly variables: ReadonlyMap<string, Value>;
  readonly addGenerationPrompt: boolean;
  readonly now: Date;
}

/** The conversation is none that the format can express: the published encoder raises there, too. */
export function refuse(message: string, param = "messages"): never {
  throw new ChatTemplateRefusal(message, { param });
}

/** The conversation of a request. Throws InvalidRequestError for what is no plain data. */
function conversationOf(input: TemplateInput): Conversation {
  const { variables = {}, tools, addGenerationPrompt, now } = input;
  const entries = variables instanceof Map ? [...variables] : Object.entries(variables);
  const conversation = {
    messages: input.messages.map(messageValue),
    tools: tools === undefined ? [] : (plainValue(tools) as readonly Value[]),
    variables: new Map(
      entries.filter(([, value]) => value !== undefined).map(([name, value]) => [name, plainValue(value)]),
    ),
    addGenerationPrompt,
    now: now ?? new Date(),
  };
  if (conversation.messages.length === 0) refuse("There must be at least one message");
  return conversation;
}

/** Runs an encoder with the engine's budget; its failures become InvalidRequestErrors. */
function guarded<T>(input: TemplateInput, encode: (conversation: Conversation) => T): T {
  const { template: name } = input;
  if (name !== undefined && name !== "default")
    throw new InvalidRequestError(`The model has no chat template '${name.slice(0, 100)}'`);
  refill();
  try {
    return encode(conversationOf(input));
  } catch (error) {
    if (!(error instanceof ChatTemplateError)) throw error;
    throw new InvalidRequestError(`The prompt encoder fails on these messages: ${error.message}`, {
      param: "messages",
      cause: error,
    });
  }
}

/** Fields of a message that all encoders print. */
const PRINTED = ["content", ...REASONING_FIELDS].join(" ");

/**
 * Runs an encoder for a request, up to inside of the final message if it asks for that.
 * @param cut shortens the result by what shortens its text.
 */
export function rendered<T>(
  input: TemplateInput,
  encode: (conversation: Conversation) => T,
  cut: (result: T, shorten: (text: string) => string) => T,
): T {
  const { continueFinalMessage: field = false, addGenerationPrompt } = input;
  if (field === false || field === "") return guarded(input, encode);
  if (addGenerationPrompt)
    throw new InvalidRequestError("continue_final_message and add_generation_prompt exclude each other", {
      param: "continue_final_message",
    });
  return guarded(input, (conversation) => {
    const continuation = continueFinal(conversation.messages, field, PRINTED);
    return cut(encode({ ...conversation, messages: continuation.messages }), (text) => continuation.cut(text));
  });
}

/** A chat template that renders by an encoder. */
export function encoderTemplate(encode: (conversation: Conversation) => string): ChatTemplate {
  return {
    needsNullContent: false,
    render: (input) => rendered(input, encode, (text, shorten) => shorten(text)),
  };
}
