import { setImmediate } from "node:timers/promises";
import { ContextLengthError, InvalidRequestError } from "../errors.ts";
import type { ChatTemplate, TemplateMessage } from "../template/chat-template.ts";
import { type Tokenizer, TokenizerError } from "../tokenizer/tokenizer.ts";
import type { Conversation, Message } from "./conversation.ts";

/** What goes to an engine: token ids, and the text they came from. */
export interface Prompt {
  readonly text: string;
  readonly tokenIds: Uint32Array;
}

function templateMessage(message: Message): TemplateMessage {
  return {
    role: message.role,
    content: message.content,
    ...(message.name !== undefined && { name: message.name }),
    ...(message.reasoning !== undefined && { reasoning_content: message.reasoning }),
    ...(message.toolCallId !== undefined && { tool_call_id: message.toolCallId }),
  };
}

/** Put after a final message that the model is to go on with; no text of a client ends with it. */
const MARK = "\u{e000}\u{e001}go on\u{e001}\u{e000}";

/** What encodes a prompt. */
export interface PromptEncoder {
  readonly tokenizer: Tokenizer;
  /** Ids of a text that takes long, from another thread. */
  encodeLong(text: string): Promise<Uint32Array>;
}

/**
 * Token ids of a prompt's text. One that cannot fit the context (in tokens; 0: unknown) is refused before it costs seconds to encode.
 * Throws GatewayErrors.
 */
export async function encodePrompt(
  text: string,
  { tokenizer, encodeLong }: PromptEncoder,
  contextLength: number,
): Promise<Uint32Array> {
  if (contextLength > 0 && text.length > contextLength * tokenizer.longestToken) {
    throw new ContextLengthError(
      `This model's maximum context length is ${contextLength} tokens. However, the messages have ${text.length} characters, which is more than fits. Please shorten the messages.`,
      { param: "messages" },
    );
  }
  try {
    const ids = tokenizer.encodeSoon(text);
    if (ids !== undefined) return ids;
    await setImmediate(); // rendering it has taken milliseconds, and so will sending it
    return await encodeLong(text);
  } catch (error) {
    if (!(error instanceof TokenizerError)) throw error;
    throw new InvalidRequestError(`The messages cannot be tokenized: ${error.message}`, {
      param: "messages",
      cause: error,
    });
  }
}

/** The text of a conversation's prompt. */
export function renderPrompt(conversation: Conversation, template: ChatTemplate): string {
  const messages = conversation.messages.map(templateMessage);
  const final = messages.at(-1);
  if (conversation.continueFinalMessage && final !== undefined)
    messages[messages.length - 1] = { ...final, content: final.content + MARK };
  const text = template.render({
    messages,
    addGenerationPrompt: conversation.addGenerationPrompt,
    variables: conversation.templateVariables,
  });
  return conversation.continueFinalMessage ? cutAtMark(text) : text;
}

/** `continue_final_message` of transformers: everything that the template puts after the last message's text is cut. */
function cutAtMark(text: string): string {
  const at = text.lastIndexOf(MARK);
  if (at < 0) {
    throw new InvalidRequestError("The chat template changes the final message, so it cannot be continued", {
      param: "continue_final_message",
    });
  }
  return text.slice(0, at);
}
