import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { Content, ContentPart, Conversation, Message, Role, ToolCall } from "../../generation/conversation.ts";
import { customArguments } from "../../generation/tools/declaration.ts";
import { atOnce, PIECE_ITEMS, type Steps } from "../../steps.ts";
import { lossless } from "../shared/tools.ts";
import { type ArgumentsText, argumentsTexts } from "./raw-arguments.ts";
import type { ChatMessage, ChatToolCall, ConversationRequest, ContentPart as SentPart } from "./schema.ts";
import { chatToolsSteps } from "./tool-choice.ts";

const ROLES: Readonly<Record<string, Role>> = {
  system: "system",
  developer: "developer",
  user: "user",
  assistant: "assistant",
  tool: "tool",
  function: "tool",
};

const missing = (param: string) => new InvalidRequestError(`Missing required parameter: '${param}'`, { param });

function content({ content: sent, role, refusal }: ChatMessage, at: string): Content {
  if (sent === undefined || sent === null) return role === "assistant" ? (refusal ?? "") : "";
  if (typeof sent === "string") return sent;
  const parts = sent.map((part, i) => contentPart(part, role, `${at}.content[${i}]`));
  return parts.length === 0 ? "" : parts;
}

/** No text was sent, not even an empty one. */
const isNothing = ({ content: sent, refusal }: ChatMessage): boolean =>
  sent === undefined || sent === null ? !refusal : typeof sent !== "string" && sent.length === 0;

function contentPart(part: SentPart, role: string, at: string): ContentPart {
  if (part.type === "text") {
    if (part.text === undefined) throw missing(`${at}.text`);
    return { type: "text", text: part.text };
  }
  if (part.type === "refusal" && role === "assistant") return { type: "text", text: part.refusal ?? "" };
  throw new UnsupportedError(`${at}.type: content of type '${part.type.slice(0, 40)}' is not supported`, {
    param: `${at}.type`,
  });
}

/** `text`: of arguments that are an object. */
function toolCall(call: ChatToolCall, at: string, text: string | undefined): ToolCall {
  const id = call.id ?? "";
  if (call.custom) return { id, name: call.custom.name, arguments: customArguments(call.custom.input ?? "") };
  if (!call.function) throw missing(`${at}.function`);
  return { id, name: call.function.name, arguments: argumentsOf(call.function, text) };
}

type SentFunction = Pick<NonNullable<ChatToolCall["function"]>, "arguments">;

const argumentsOf = ({ arguments: sent }: SentFunction, text = ""): string => (typeof sent === "string" ? sent : text);

const areObject = ({ arguments: sent }: SentFunction): boolean => Boolean(sent) && typeof sent !== "string";

const NO_CALLS: readonly ToolCall[] = [];

const hasCalls = ({ tool_calls: calls, function_call: old }: ChatMessage): boolean =>
  Boolean(calls && calls.length > 0) || Boolean(old);

/** Calls of an assistant message, in the form of today or that of `function_call`. */
function* toolCalls(message: ChatMessage, i: number, text: ArgumentsText): Steps<readonly ToolCall[]> {
  const { tool_calls: sent, function_call: old } = message;
  const calls: ToolCall[] = [];
  for (const call of sent ?? []) {
    const k = calls.length;
    if (k % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
    const isWritten = call.custom || !call.function || !areObject(call.function);
    calls.push(toolCall(call, `messages[${i}].tool_calls[${k}]`, isWritten ? undefined : yield* text(i, k)));
  }
  if (calls.length > 0 || !old) return calls;
  return [{ id: "", name: old.name, arguments: argumentsOf(old, areObject(old) ? yield* text(i) : undefined) }];
}

function roleOf(message: ChatMessage, i: number): Role {
  const role = Object.hasOwn(ROLES, message.role) ? ROLES[message.role] : undefined;
  if (role !== undefined) return role;
  throw new InvalidRequestError(
    `messages[${i}].role: '${message.role.slice(0, 40)}' is not one of ${Object.keys(ROLES).join(", ")}`,
    { param: `messages[${i}].role` },
  );
}

function toMessage(message: ChatMessage, i: number, role: Role, calls: readonly ToolCall[]): Message {
  const at = `messages[${i}]`;
  if (calls.length > 0 && role !== "assistant") {
    throw new InvalidRequestError(`${at}.tool_calls: only messages of the role assistant have tool calls`, {
      param: `${at}.tool_calls`,
    });
  }
  if (role === "user" && (message.content === undefined || message.content === null)) {
    throw new InvalidRequestError(`${at}.content is missing`, { param: `${at}.content` });
  }
  const thinking = typeof message.thinking === "string" ? message.thinking : undefined;
  const reasoning = message.reasoning_content ?? thinking ?? message.reasoning;
  return {
    role,
    content: content(message, at),
    ...(calls.length > 0 && isNothing(message) && { withoutContent: true }),
    ...(message.name && { name: message.name }),
    ...(reasoning && { reasoning }),
    ...(calls.length > 0 && { toolCalls: calls }),
    ...(role === "tool" && message.tool_call_id && { toolCallId: message.tool_call_id }),
  };
}

/**
 * The conversation of a request with messages. `raw`: the request's text, so that prompts print numbers and the order of keys as sent.
 * Throws InvalidRequestError.
 */
export const chatConversation = (body: ConversationRequest, raw?: string): Conversation =>
  atOnce(chatConversationSteps(body, raw));

/** The same in steps. */
export function* chatConversationSteps(body: ConversationRequest, raw?: string): Steps<Conversation> {
  const text = argumentsTexts(body.messages, raw);
  const messages: Message[] = [];
  for (const [i, message] of body.messages.entries()) {
    if (i % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
    const role = roleOf(message, i);
    messages.push(toMessage(message, i, role, hasCalls(message) ? yield* toolCalls(message, i, text) : NO_CALLS));
  }
  const continueFinalMessage = body.continue_final_message ?? false;
  if (continueFinalMessage !== false) {
    if (body.add_generation_prompt === true) {
      throw new InvalidRequestError("continue_final_message and add_generation_prompt exclude each other", {
        param: "continue_final_message",
      });
    }
    if (messages.at(-1)?.role !== "assistant") {
      throw new InvalidRequestError("continue_final_message needs a last message of the role assistant", {
        param: "continue_final_message",
      });
    }
  }
  const { reasoning_effort: effort, documents, response_format: format, chat_template_kwargs: variables } = body;
  return {
    messages,
    ...(yield* chatToolsSteps(body, raw)),
    continueFinalMessage,
    addGenerationPrompt: continueFinalMessage === false && body.add_generation_prompt !== false,
    ...(effort !== undefined && effort !== null && { reasoningEffort: effort }),
    ...(format && { responseFormat: yield* lossless(raw, "response_format", format) }),
    ...(documents && { documents: yield* lossless(raw, "documents", documents) }),
    templateVariables: variables ? yield* lossless(raw, "chat_template_kwargs", variables) : {},
  };
}
