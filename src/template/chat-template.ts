import { Template } from "@huggingface/jinja";
import { InvalidRequestError } from "../errors.ts";

/** A message as templates see it. */
export interface TemplateMessage {
  readonly role: string;
  readonly content: string;
  readonly [key: string]: unknown;
}

export interface TemplateInput {
  readonly messages: readonly TemplateMessage[];
  readonly addGenerationPrompt: boolean;
  /** `chat_template_kwargs`, `documents`: further variables; they never replace the ones above. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** A model's chat template, compiled once. */
export interface ChatTemplate {
  /** The prompt's text. Throws InvalidRequestError with the template's own words when it refuses the conversation. */
  render(input: TemplateInput): string;
}

/** A template that does not compile. */
export class ChatTemplateError extends Error {
  override readonly name = "ChatTemplateError";
}

/** @param specials texts of the special tokens that templates use, e.g. `bos_token`. */
export function compileChatTemplate(source: string, specials: Readonly<Record<string, string>>): ChatTemplate {
  let template: Template;
  try {
    template = new Template(source);
  } catch (error) {
    throw new ChatTemplateError(`the chat template does not compile: ${(error as Error).message}`, { cause: error });
  }
  return {
    render(input) {
      try {
        return template.render({
          ...specials,
          ...input.variables,
          messages: input.messages,
          add_generation_prompt: input.addGenerationPrompt,
        });
      } catch (error) {
        throw new InvalidRequestError(`The chat template refuses these messages: ${(error as Error).message}`, {
          param: "messages",
          cause: error,
        });
      }
    },
  };
}
