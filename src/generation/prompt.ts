import { InvalidRequestError } from "../errors.ts";
import type { ChatTemplate, TemplateMessage } from "../template/chat-template.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
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

/** Renders a conversation and turns it into token ids. */
export function buildPrompt(conversation: Conversation, template: ChatTemplate, tokenizer: Tokenizer): Prompt {
  let text = template.render({
    messages: conversation.messages.map(templateMessage),
    addGenerationPrompt: conversation.addGenerationPrompt,
    variables: conversation.templateVariables,
  });
  if (conversation.continueFinalMessage) text = cutAfterFinalMessage(text, conversation);
  return { text, tokenIds: tokenizer.encode(text) };
}

/** `continue_final_message` of transformers: everything that the template puts after the last message's text is cut. */
function cutAfterFinalMessage(text: string, conversation: Conversation): string {
  const final = conversation.messages.at(-1)!.content;
  const whole = text.lastIndexOf(final);
  if (whole >= 0) return text.slice(0, whole + final.length);
  const trimmed = final.trim();
  const at = text.lastIndexOf(trimmed);
  if (at < 0) {
    throw new InvalidRequestError("The chat template changes the final message, so it cannot be continued", {
      param: "continue_final_message",
    });
  }
  return text.slice(0, at + trimmed.length);
}
