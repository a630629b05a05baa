/** `continue_final_message` of transformers: the prompt ends where the text of the final message ends. */
import { InvalidRequestError } from "../errors.ts";
import { strip } from "./engine/strings.ts";
import { textOf, type Value } from "./engine/values.ts";
import { type PreparedMessage, REASONING_FIELDS } from "./prepare-messages.ts";

/** Put behind the text that is to be continued. The space tells whether the template trims. */
const MARK = "CONTINUE_FINAL_MESSAGE_TAG ";
const BARE_MARK = MARK.trim();

export interface Continuation {
  readonly messages: readonly PreparedMessage[];
  /** The prompt of these messages, cut behind the text. Throws InvalidRequestError when the template does not print the text. */
  cut(prompt: string): string;
}

function refuse(message: string): never {
  throw new InvalidRequestError(message, { param: "continue_final_message" });
}

/**
 * Marks the final message.
 * @param field the field to continue; true: `content`.
 * @param source the template's text: it must know the field.
 */
export function continueFinal(
  messages: readonly PreparedMessage[],
  field: string | true,
  source: string,
): Continuation {
  const name = field === true ? "content" : field;
  const final = messages.at(-1);
  const value = final?.get(name);
  if (final === undefined || value === undefined || value === null)
    return refuse(`The final message has no '${name}' to continue`);
  // reasoning is there under several names, and the template may read any of them
  const copies = (REASONING_FIELDS as readonly string[]).includes(name)
    ? REASONING_FIELDS.filter((each) => final.get(each) === value)
    : [name];
  if (!copies.some((each) => source.includes(each)))
    return refuse(`The chat template does not know the field '${name}' that is to be continued`);
  const marked = new Map(final);
  let text = textOf(value);
  if (Array.isArray(value)) {
    const parts = markedParts(value as readonly Value[]);
    text = parts.text;
    marked.set(name, parts.value);
  } else if (text === undefined) return refuse(`The '${name}' of the final message is no text to continue`);
  else for (const each of copies) marked.set(each, text + MARK);
  const wanted = strip(text, undefined);
  return { messages: [...messages.slice(0, -1), marked], cut: (prompt) => cut(prompt, wanted) };
}

/** Parts of content with the mark in the last one that has a text. */
function markedParts(parts: readonly Value[]): { value: Value; text: string } {
  const at = parts.findLastIndex((part) => part instanceof Map && part.has("text"));
  const part = parts[at];
  const text = part instanceof Map ? textOf((part as PreparedMessage).get("text") ?? null) : undefined;
  if (text === undefined) return refuse("The final message has no text to continue");
  const marked = new Map(part as PreparedMessage).set("text", text + MARK);
  return { value: parts.with(at, marked), text };
}

function cut(prompt: string, text: string): string {
  const at = prompt.lastIndexOf(BARE_MARK);
  if (at < 0 || !prompt.includes(text))
    return refuse("The chat template changes the final message, so it cannot be continued");
  const kept = prompt.slice(0, at);
  return prompt.startsWith(MARK, at) ? kept : strip(kept, undefined, "right");
}
