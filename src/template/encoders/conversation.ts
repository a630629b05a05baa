/** What all native encoders share: the conversation they read, and the shell that makes a chat template of an encoder. */
import { InvalidRequestError } from "../../errors.ts";
import { atOnce, PIECE_ITEMS, type Steps } from "../../steps.ts";
import { type ChatTemplate, ChatTemplateRefusal, callArguments, type TemplateInput } from "../chat-template.ts";
import { continueFinal } from "../continue-message.ts";
import { PLAIN, type Style } from "../engine/json.ts";
import { writtenAhead } from "../engine/json-steps.ts";
import { budget, refill } from "../engine/limits.ts";
import { runtime } from "../engine/runtime.ts";
import { isDict, type Value } from "../engine/values.ts";
import { ChatTemplateError } from "../errors.ts";
import { plainSteps, plainValue } from "../plain-value.ts";
import { messageSteps, messageValue, type PreparedMessage, REASONING_FIELDS } from "../prepare-messages.ts";

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

/** An encoder: gives way between pieces of a conversation. */
export type Encode<T> = (conversation: Conversation) => Steps<T>;

/** In which way an encoder is run. */
interface Way {
  /** All data is looked through in steps, and large values are written as JSON in these styles first. */
  readonly ahead?: readonly Style[];
}

/** The conversation of a request. Throws InvalidRequestError for what is no plain data. */
function* conversationOf(input: TemplateInput, { ahead }: Way): Steps<Conversation> {
  const { variables = {}, tools, addGenerationPrompt, now } = input;
  const isLong = ahead !== undefined;
  const messages: PreparedMessage[] = [];
  for (const message of input.messages) {
    messages.push(isLong ? yield* messageSteps(message) : messageValue(message));
    if (messages.length % PIECE_ITEMS === 0) yield;
  }
  if (messages.length === 0) refuse("There must be at least one message");
  const values = new Map<string, Value>();
  for (const [name, value] of variables instanceof Map ? variables : Object.entries(variables))
    if (value !== undefined) values.set(name, isLong ? yield* plainSteps(value) : plainValue(value));
  const listed = tools === undefined ? [] : isLong ? yield* plainSteps(tools) : plainValue(tools);
  return {
    messages,
    tools: listed as readonly Value[],
    variables: values,
    addGenerationPrompt,
    now: now ?? new Date(),
  };
}

/** Runs an encoder with the engine's budget; its failures become InvalidRequestErrors. */
function* guarded<T>(input: TemplateInput, encode: Encode<T>, way: Way): Steps<T> {
  const { template: name } = input;
  if (name !== undefined && name !== "default")
    throw new InvalidRequestError(`The model has no chat template '${name.slice(0, 100)}'`);
  refill();
  try {
    const conversation = yield* conversationOf(input, way);
    const written = way.ahead && (yield* writtenAhead(jsonOf(conversation), way.ahead));
    return yield* alone(encode(conversation), written);
  } catch (error) {
    if (!(error instanceof ChatTemplateError)) throw error;
    throw new InvalidRequestError(`The prompt encoder fails on these messages: ${error.message}`, {
      param: "messages",
      cause: error,
    });
  }
}

/** Runs steps with a budget of their own: others run between them, and there is one for the thread. */
function* alone<T>(steps: Steps<T>, written: readonly Style[] | undefined): Steps<T> {
  refill();
  for (;;) {
    let left: typeof budget;
    runtime.written = written;
    try {
      const { done, value } = steps.next();
      if (done === true) return value;
      left = { ...budget };
    } finally {
      runtime.written = undefined;
    }
    yield;
    Object.assign(budget, left);
  }
}

/** What encoders write as JSON: functions and their list, the format of an answer, arguments of calls and their values. */
function* jsonOf({ messages, tools, variables }: Conversation): Iterable<Value> {
  const format = variables.get("response_format") ?? null;
  for (const value of [...tools, tools, format]) {
    yield value;
    if (isDict(value)) yield* value.values();
  }
  for (const given of callArguments(messages)) {
    yield given;
    if (isDict(given)) yield* given.values();
  }
}

/** Fields of a message that all encoders print. */
const PRINTED = ["content", ...REASONING_FIELDS].join(" ");

/**
 * Runs an encoder for a request, up to inside of the final message if it asks for that.
 * @param cut shortens the result by what shortens its text.
 */
export function* rendered<T>(
  input: TemplateInput,
  encode: Encode<T>,
  cut: (result: T, shorten: (text: string) => string) => T,
  way: Way = {},
): Steps<T> {
  const { continueFinalMessage: field = false, addGenerationPrompt } = input;
  if (field === false || field === "") return yield* guarded(input, encode, way);
  if (addGenerationPrompt)
    throw new InvalidRequestError("continue_final_message and add_generation_prompt exclude each other", {
      param: "continue_final_message",
    });
  const continued: Encode<T> = function* (conversation) {
    const continuation = continueFinal(conversation.messages, field, PRINTED);
    const result = yield* encode({ ...conversation, messages: continuation.messages });
    return cut(result, (text) => continuation.cut(text));
  };
  return yield* guarded(input, continued, way);
}

/** A chat template that renders by an encoder. */
export function encoderTemplate(encode: Encode<string>): ChatTemplate {
  const cut = (text: string, shorten: (text: string) => string) => shorten(text);
  return {
    needsNullContent: false,
    render: (input) => atOnce(rendered(input, encode, cut)),
    renderSteps: (input) => rendered(input, encode, cut, { ahead: [PLAIN] }),
  };
}

/** The texts of all items, one behind the other. */
export function* joined<T>(items: readonly T[], textOf: (item: T, at: number) => string, between = ""): Steps<string> {
  let text = "";
  for (let at = 0; at < items.length; at++) {
    text += (at === 0 ? "" : between) + textOf(items[at]!, at);
    if (at % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
  }
  return text;
}
