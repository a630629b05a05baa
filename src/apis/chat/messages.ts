import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { Conversation, Message, Role } from "../../generation/conversation.ts";
import type { ChatMessage, ChatRequest, ContentPart, ConversationRequest } from "./schema.ts";

const ROLES: Readonly<Record<string, Role>> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
  tool: "tool",
  function: "tool",
};

function contentText(message: ChatMessage, at: string): string {
  const { content } = message;
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  // Templates that take text only get the parts on lines of their own, as from vLLM.
  return content.map((part, i) => partText(part, message.role, `${at}.content[${i}]`)).join("\n");
}

function partText(part: ContentPart, role: string, at: string): string {
  if (part.type === "text") {
    if (part.text === undefined) throw new InvalidRequestError(`${at}.text is missing`, { param: `${at}.text` });
    return part.text;
  }
  if (part.type === "refusal" && role === "assistant") return part.refusal ?? "";
  throw new UnsupportedError(`${at}.type: content of type '${part.type.slice(0, 40)}' is not supported`, {
    param: `${at}.type`,
  });
}

function toMessage(message: ChatMessage, i: number): Message {
  const at = `messages[${i}]`;
  const role = Object.hasOwn(ROLES, message.role) ? ROLES[message.role] : undefined;
  if (role === undefined) {
    throw new InvalidRequestError(
      `${at}.role: '${message.role.slice(0, 40)}' is not one of ${Object.keys(ROLES).join(", ")}`,
      { param: `${at}.role` },
    );
  }
  if ((message.tool_calls?.length ?? 0) > 0 || message.function_call) {
    throw new UnsupportedError(`${at}.tool_calls: tool calls are not supported`, { param: `${at}.tool_calls` });
  }
  const content = contentText(message, at);
  if (role === "user" && (message.content === undefined || message.content === null)) {
    throw new InvalidRequestError(`${at}.content is missing`, { param: `${at}.content` });
  }
  const reasoning = message.reasoning_content ?? message.reasoning;
  return {
    role,
    content,
    ...(message.name && { name: message.name }),
    ...(reasoning && { reasoning }),
    ...(message.tool_call_id && { toolCallId: message.tool_call_id }),
  };
}

/**
 * What chat templates know of `reasoning_effort`: its value, and the switches that turn thinking off. Only those two lowest levels
 * touch the switches, so that for the others the template's own default stays.
 */
function reasoningVariables(effort: ChatRequest["reasoning_effort"]): Record<string, unknown> {
  if (effort === undefined || effort === null) return {};
  const off = effort === "none" || effort === "minimal" || effort === 0;
  return { reasoning_effort: effort, ...(off && { enable_thinking: false, thinking: false }) };
}

/** Has the client given a field a meaning? */
export const asked = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0);

/** Refuses what would change the prompt but is not supported. */
export function refuseUnsupportedPrompt(body: Omit<ConversationRequest, "messages">): void {
  if (asked(body.tools) && body.tool_choice !== "none")
    throw new UnsupportedError("tools are not supported", { param: "tools" });
  if (asked(body.functions)) throw new UnsupportedError("functions are not supported", { param: "functions" });
  if (asked(body.chat_template))
    throw new UnsupportedError("chat_template may not be set by a request", { param: "chat_template" });
}

/** The conversation of a request with messages. */
export function chatConversation(body: ConversationRequest): Conversation {
  const messages = body.messages.map(toMessage);
  const continueFinalMessage = body.continue_final_message === true;
  if (continueFinalMessage) {
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
  return {
    messages,
    continueFinalMessage,
    addGenerationPrompt: !continueFinalMessage && body.add_generation_prompt !== false,
    templateVariables: {
      ...(body.documents && { documents: body.documents }),
      ...reasoningVariables(body.reasoning_effort),
      ...body.chat_template_kwargs,
    },
  };
}
