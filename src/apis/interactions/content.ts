/** Contents of steps as text. */
import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { Content, TextPart } from "../../generation/conversation.ts";
import { isObject } from "../shared/tools.ts";
import type { Loose } from "./schema.ts";

export const wrong = (param: string, message: string) => new InvalidRequestError(message, { param });
export const missing = (param: string) => wrong(param, `Missing required parameter: '${param}'`);

/** The types of contents; all others are types of steps. */
const CONTENTS: ReadonlySet<unknown> = new Set(["text", "image", "audio", "video", "document"]);
export const isContent = ({ type }: Loose): boolean => CONTENTS.has(type);

/** The text of a content. Throws for those that have none. `at`: its name in errors. */
export function textOfContent(content: unknown, at: string): string {
  if (!isObject(content)) throw wrong(at, `${at} must be an object`);
  const { type } = content;
  if (typeof type !== "string") throw missing(`${at}.type`);
  const text = type === "text" ? content["text"] : type === "document" ? documentText(content) : undefined;
  if (typeof text === "string") return text;
  if (type === "text")
    throw (content["text"] ?? undefined) === undefined
      ? missing(`${at}.text`)
      : wrong(`${at}.text`, `${at}.text must be a string`);
  throw new UnsupportedError(`${at}.type: content of type '${type.slice(0, 40)}' is not supported`, {
    param: `${at}.type`,
  });
}

/** The text of a document that is nothing but text. */
function documentText({ data, mime_type: mime }: Loose): string | undefined {
  if (typeof data !== "string" || typeof mime !== "string") return undefined;
  return mime.startsWith("text/") || mime === "application/json" ? Buffer.from(data, "base64").toString() : undefined;
}

/** Contents as those of a message; undefined where there is none. */
export function partsOf(contents: unknown, at: string): Content | undefined {
  if (contents === undefined || contents === null) return undefined;
  if (!Array.isArray(contents)) throw wrong(at, `${at} must be a list of contents`);
  const parts = contents.map(
    (content: unknown, i): TextPart => ({ type: "text", text: textOfContent(content, `${at}[${i}]`) }),
  );
  return parts.length === 1 ? parts[0]!.text : parts.length === 0 ? undefined : parts;
}
