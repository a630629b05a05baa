/** Reading the fields of messages and tools. */
import { dumps, styleOf } from "../engine/json.ts";
import { type Dict, isDict, isList, textOf, truthy, type Value } from "../engine/values.ts";
import { type JsonValue, parseLossless } from "../lossless-json.ts";
import { type PreparedMessage, REASONING_FIELDS } from "../prepare-messages.ts";
import { refuse } from "./conversation.ts";

/** Python's `json.dumps(value, ensure_ascii=False)`. */
export const json = (value: Value): string => dumps(value, false, null, null, false);

/** The same without blanks and with sorted keys at every depth. */
export const sortedJson = (value: Value): string => dumps(value, false, null, [",", ":"], true);
export const SORTED = styleOf(false, null, [",", ":"], true);

export const field = (dict: Dict, key: string): Value => dict.get(key) ?? null;

export const roleOf = (message: PreparedMessage): string => textOf(field(message, "role")) ?? "";

/** The first reasoning that is set; empty when there is none. */
export function reasoningOf(message: PreparedMessage): string {
  for (const name of REASONING_FIELDS) {
    const value = field(message, name);
    if (!truthy(value)) continue;
    return textOf(value) ?? refuse(`'${name}' of a message must be text`);
  }
  return "";
}

/** A piece of content: text, or the place of an image. */
export type Part = { readonly text: string } | "image";

/** Content as its parts; null and absent content have none, text is one. Refuses parts of other kinds. */
export function partsOf(content: Value): readonly Part[] {
  if (content === null) return [];
  const text = textOf(content);
  if (text !== undefined) return [{ text }];
  if (!isList(content)) return refuse("The content of a message must be text or a list of parts");
  return content.map((part) => {
    const kind = isDict(part) ? textOf(field(part, "type")) : undefined;
    if (kind === "image" || kind === "image_url") return "image";
    const words = isDict(part) ? textOf(field(part, "text")) : undefined;
    if (words === undefined || (kind !== "text" && kind !== undefined))
      return refuse(`The model's prompt format has no content part of the type '${kind ?? ""}'`);
    return { text: words };
  });
}

/** Content as text, its parts joined. `image` is what stands for an image; without it images are refused. */
export function contentText(message: PreparedMessage, joint: string, image?: string): string {
  return partsOf(field(message, "content"))
    .map((part) => (part === "image" ? (image ?? refuse("The model takes no images")) : part.text))
    .join(joint);
}

export interface Call {
  readonly id: string | undefined;
  readonly name: string;
  /** As given: text or an object; null when absent. */
  readonly arguments: Value;
}

/** The tool calls of a message. */
export function callsOf(message: PreparedMessage): readonly Call[] {
  const calls = field(message, "tool_calls");
  if (!truthy(calls)) return [];
  if (!isList(calls)) return refuse("'tool_calls' of a message must be a list");
  return calls.map((call) => {
    if (!isDict(call)) return refuse("A tool call must be an object");
    const inner = field(call, "function");
    const callee = isDict(inner) ? inner : call;
    const name = textOf(field(callee, "name")) ?? refuse("A tool call of a message has no function name");
    return { id: textOf(field(call, "id")), name, arguments: field(callee, "arguments") };
  });
}

/** The function that a tool of the request declares. */
export function functionOf(tool: Value): Dict {
  const declared = isDict(tool) ? field(tool, "function") : null;
  return isDict(declared) ? declared : refuse("A tool must have a function", "tools");
}

/** The value of a JSON text, numbers as they are written; undefined when it is none. */
export function parsed(text: string): JsonValue | undefined {
  try {
    return parseLossless(text);
  } catch {
    return undefined;
  }
}
