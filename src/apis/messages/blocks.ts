/** Content blocks of a history as text. */
import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { Content, TextPart } from "../../generation/conversation.ts";
import { isObject } from "../shared/tools.ts";
import type { SentBlock, SentContent } from "./schema.ts";

export const wrong = (param: string, message: string) => new InvalidRequestError(message, { param });

/** A member of a block that must be a string. */
export function stringOf(block: SentBlock, name: string, at: string): string {
  const value = block[name];
  if (value === undefined || value === null)
    throw wrong(`${at}.${name}`, `Missing required parameter: '${at}.${name}'`);
  if (typeof value !== "string") throw wrong(`${at}.${name}`, `${at}.${name} must be a string`);
  return value;
}

const optional = (block: SentBlock, name: string): string | undefined => {
  const value = block[name];
  return typeof value === "string" && value !== "" ? value : undefined;
};

const unsupported = (what: string, at: string) =>
  new UnsupportedError(`${at}: ${what} is not supported`, { param: at });

/** The text of a block that the user or a tool gives. Throws for those that have none. */
export function givenText(block: SentBlock, at: string): string {
  switch (block.type) {
    case "text":
      return stringOf(block, "text", at);
    case "document":
      return documentText(block, at);
    case "search_result":
      return searchText(block, at);
    default:
      throw unsupported(`content of type '${block.type.slice(0, 40)}'`, `${at}.type`);
  }
}

function documentText(block: SentBlock, at: string): string {
  const source = block["source"];
  if (!isObject(source)) throw wrong(`${at}.source`, `${at}.source must be an object`);
  const type = stringOf(source as SentBlock, "type", `${at}.source`);
  if (type !== "text" && type !== "content")
    throw unsupported(`a document whose source is '${type.slice(0, 40)}'`, `${at}.source.type`);
  const text =
    type === "text"
      ? stringOf(source as SentBlock, "data", `${at}.source`)
      : contentText(source["content"] as SentContent, `${at}.source.content`);
  return tagged("document", [optional(block, "title"), optional(block, "context")], text);
}

function searchText(block: SentBlock, at: string): string {
  const text = contentText(block["content"] as SentContent, `${at}.content`);
  return tagged("search_result", [optional(block, "title"), optional(block, "source")], text);
}

const tagged = (name: string, heads: readonly (string | undefined)[], text: string): string =>
  [`<${name}>`, ...heads.filter((head) => head !== undefined), text, `</${name}>`].join("\n");

const contentText = (content: unknown, at: string): string => {
  const parts = givenContent(content, at);
  return typeof parts === "string" ? parts : parts.map(({ text }) => text).join("\n");
};

/** A string, or a list of blocks that have a text, as content. `tell`: what the model is told of tools that are referred to. */
export function givenContent(content: unknown, at: string, tell?: (tools: readonly string[]) => string): Content {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) throw wrong(at, `${at} must be a string or a list of blocks`);
  const parts: TextPart[] = [];
  /** Names of tools that stand one behind the other. */
  let found: string[] = [];
  const tellFound = () => {
    if (found.length > 0 && tell !== undefined) parts.push({ type: "text", text: tell(found) });
    found = [];
  };
  content.forEach((block: unknown, i) => {
    const place = `${at}[${i}]`;
    if (!isObject(block) || typeof block["type"] !== "string")
      throw wrong(`${place}.type`, `${place}.type must be a string`);
    const sent = block as SentBlock;
    if (sent.type === "tool_reference" && tell !== undefined) found.push(stringOf(sent, "tool_name", place));
    else {
      tellFound();
      parts.push({ type: "text", text: givenText(sent, place) });
    }
  });
  tellFound();
  return plain(parts);
}

/** One text as a string, whichever way it was sent: some templates write a list in another way. */
export const plain = (parts: readonly TextPart[]): Content => (parts.length > 1 ? parts : (parts[0]?.text ?? ""));

/** What another server did for an assistant in an earlier turn, as text: the block itself, without what only that server can read. */
export function traceOf(block: SentBlock): string {
  const json = JSON.stringify(block, (name, value: unknown) =>
    name === "cache_control" || name.startsWith("encrypted_") ? undefined : value,
  );
  return `<${block.type}>\n${json}\n</${block.type}>`;
}

/** Blocks of tools that another server ran, and of what they gave. */
export const isServerBlock = ({ type }: SentBlock): boolean =>
  type === "server_tool_use" || type === "mcp_tool_use" || type.endsWith("_tool_result");
