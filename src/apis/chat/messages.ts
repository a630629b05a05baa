import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { Content, ContentPart, Conversation, Message, Role, ToolCall } from "../../generation/conversation.ts";
import { customArguments } from "../../generation/tools/declaration.ts";
import { losslessMember } from "../shared/tools.ts";
import { type ArgumentsText, argumentsTexts } from "./raw-arguments.ts";
import type { ChatMessage, ChatToolCall, ConversationRequest, ContentPart as SentPart } from "./schema.ts";
import { chatTools } from "./tool-choice.ts";

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

function toolCall(call: ChatToolCall, at: string, text: () => string): ToolCall {
  const id = call.id ?? "";
  if (call.custom) return { id, name: call.custom.name, arguments: customArguments(call.custom.input ?? "") };
  if (!call.function) throw missing(`${at}.function`);
  return { id, name: call.function.name, arguments: argumentsOf(call.function, text) };
}

/** `text`: of arguments that are an object. */
const argumentsOf = ({ arguments: sent }: NonNullable<ChatToolCall["function"]>, text: () => string): string =>
  typeof sent === "string" ? sent : sent ? text() : "";

/** Calls of an assistant message, in the form of today or that of `function_call`. */
function toolCalls(
  { tool_calls: calls, function_call: old }: ChatMessage,
  at: string,
  text: (call?: number) => string,
): ToolCall[] {
  if (calls && calls.length > 0) return calls.map((call, i) => toolCall(call, `${at}.tool_calls[${i}]`, () => text(i)));
  return old ? [{ id: "", name: old.name, arguments: argumentsOf(old, text) }] : [];
}

function toMessage(message: ChatMessage, i: number, text: ArgumentsText): Message {
  const at = `messages[${i}]`;
  const role = Object.hasOwn(ROLES, message.role) ? ROLES[message.role] : undefined;
  if (role === undefined) {
    throw new InvalidRequestError(
      `${at}.role: '${message.role.slice(0, 40)}' is not one of ${Object.keys(ROLES).join(", ")}`,
      { param: `${at}.role` },
    );
  }
  const calls = toolCalls(message, at, (call) => text(i, call));
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
export function chatConversation(body: ConversationRequest, raw?: string): Conversation {
  const text = argumentsTexts(body.messages, raw);
  const messages = body.messages.map((message, i) => toMessage(message, i, text));
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
    ...chatTools(body, raw),
    continueFinalMessage,
    addGenerationPrompt: continueFinalMessage === false && body.add_generation_prompt !== false,
    ...(effort !== undefined && effort !== null && { reasoningEffort: effort }),
    ...(format && { responseFormat: lossless(raw, "response_format", format) }),
    ...(documents && { documents: lossless(raw, "documents", documents) }),
    templateVariables: variables ? lossless(raw, "chat_template_kwargs", variables) : {},
  };
}

/** A field as sent, where the request's text is known. */
const lossless = <T>(raw: string | undefined, name: string, value: T): T =>
  raw === undefined ? value : ((losslessMember(raw, name) ?? value) as T);
