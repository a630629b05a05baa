/** Input items of Responses as a conversation. */
import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { Content, ContentPart } from "../../generation/conversation.ts";
import { rawMemberText } from "../../generation/raw-members.ts";
import { customArguments } from "../../generation/tools/declaration.ts";
import type { Turns } from "../../generation/turns.ts";
import { PIECE_ITEMS, type Steps } from "../../steps.ts";
import { isObject } from "../shared/tools.ts";
import type { Loose } from "./schema.ts";
import type { ResponseTools } from "./tools.ts";
import { textOf, traceOf } from "./trace.ts";

export interface InputReading {
  readonly tools: Pick<ResponseTools, "modelName">;
  /** The text that a blob of ours stands for; undefined: it is foreign. */
  readonly open: (blob: string) => string | undefined;
  /** The JSON text of an item of the input, where the request's text is known: of arguments that are no text themselves. */
  readonly itemText?: (index: number) => Steps<string | undefined>;
}

const wrong = (param: string, message: string) => new InvalidRequestError(message, { param });
const missing = (param: string) => wrong(param, `Missing required parameter: '${param}'`);

/**
 * Adds the items of an input to `turns`, a text as a message of the user. What models can't be told in a form of theirs becomes a call of
 * a tool with its result, or is left out: the types of the latter are returned. Throws InvalidRequestErrors; `at` is where the items are.
 */
export function* inputToTurns(
  input: string | readonly Loose[],
  turns: Turns,
  reading: InputReading,
  at = "input",
): Steps<ReadonlySet<string>> {
  const left = new Set<string>();
  if (typeof input === "string") {
    turns.user(input);
    return left;
  }
  for (const [i, item] of input.entries()) {
    const isWritten = !isObject(item["arguments"]);
    const said = isWritten ? item : withArguments(item, reading.itemText && (yield* reading.itemText(i)));
    addItem(said, turns, reading, `${at}[${i}]`, left);
    if (i % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
  }
  return left;
}

/** An item that says no more than its id. */
export const isReference = ({ type, role, content, id }: Loose): boolean =>
  type === "item_reference" ||
  ((type === undefined || type === null) && role === undefined && content === undefined && typeof id === "string");

function addItem(item: Loose, turns: Turns, reading: InputReading, at: string, left: Set<string>): void {
  const type = item["type"] ?? (item["role"] === undefined ? undefined : "message");
  if (typeof type !== "string") throw missing(`${at}.type`);
  switch (type) {
    case "message":
      message(item, turns, at);
      break;
    case "reasoning":
      turns.reasoning(reasoningText(item, reading));
      break;
    case "function_call":
    case "custom_tool_call":
      call(item, type, turns, reading, at);
      break;
    case "function_call_output":
    case "custom_tool_call_output":
      turns.result(optionalText(item["call_id"]), content(item["output"], `${at}.output`, "tool"), {
        ...(typeof item["name"] === "string" && { name: nameOf(item, at, reading) }),
      });
      break;
    case "compaction":
      compaction(item, turns, reading, left);
      break;
    default: {
      const trace = traceOf(type, item);
      if (trace === undefined) left.add(type.slice(0, 60));
      if (trace?.call !== undefined) turns.call(trace.call);
      if (trace?.output !== undefined) turns.result(trace.id, trace.output);
    }
  }
}

/** Arguments that some clients send as an object, as the text that they wrote. */
const withArguments = (item: Loose, text: string | undefined): Loose => ({
  ...item,
  arguments: (text === undefined ? undefined : rawMemberText(text, "arguments")) ?? JSON.stringify(item["arguments"]),
});

function message(item: Loose, turns: Turns, at: string): void {
  const { role } = item;
  if (item["content"] === undefined || item["content"] === null) throw missing(`${at}.content`);
  const said = content(item["content"], `${at}.content`, "message");
  if (role === "user") turns.user(said);
  else if (role === "assistant") turns.assistant(said);
  else if (role === "system" || role === "developer") turns.system(said, role);
  else throw wrong(`${at}.role`, `${at}.role must be user, assistant, system or developer`);
}

function call(item: Loose, type: string, turns: Turns, reading: InputReading, at: string): void {
  const name = nameOf(item, at, reading);
  const id = optionalText(item["call_id"]) ?? optionalText(item["id"]) ?? "";
  const given = type === "function_call" ? item["arguments"] : customArguments(textOf(item["input"] ?? ""));
  turns.call({ id, name, arguments: textOf(given ?? "") });
}

function nameOf(item: Loose, at: string, { tools }: InputReading): string {
  const { name, namespace } = item;
  if (typeof name !== "string" || name === "") throw missing(`${at}.name`);
  return tools.modelName(typeof namespace === "string" && namespace !== "" ? { name, namespace } : { name });
}

const optionalText = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

/** Our own blob counts first, as it is exact; then the raw text, then its summary. */
function reasoningText(item: Loose, { open }: InputReading): string {
  const { encrypted_content: blob, content: raw, summary } = item;
  const opened = typeof blob === "string" ? open(blob) : undefined;
  return opened ?? (partTexts(raw).join("") || partTexts(summary).join("\n\n"));
}

const partTexts = (parts: unknown): string[] =>
  Array.isArray(parts) ? parts.map((part: unknown) => (isObject(part) ? textOf(part["text"] ?? "") : "")) : [];

/** The blob holds items as JSON, or a text about them. */
function compaction(item: Loose, turns: Turns, reading: InputReading, left: Set<string>): void {
  const blob = item["encrypted_content"];
  const text = typeof blob === "string" ? reading.open(blob) : undefined;
  if (text === undefined) {
    left.add("compaction");
    return;
  }
  const items = itemList(text);
  if (items === undefined) turns.system(text, "developer");
  else for (const each of items) addItem(each, turns, reading, "input", left);
}

function itemList(text: string): Loose[] | undefined {
  if (!text.startsWith("[")) return undefined;
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.every(isObject) ? list : undefined;
  } catch {
    return undefined;
  }
}

const TEXT_PARTS = new Set(["input_text", "output_text", "text", "summary_text", "reasoning_text"]);

/** Content of a message, or the output of a tool. */
function content(given: unknown, at: string, role: string): Content {
  if (typeof given === "string") return given;
  if (given === undefined || given === null) {
    if (role === "tool") throw missing(at);
    return "";
  }
  if (!Array.isArray(given)) {
    if (role === "tool") return textOf(given);
    throw wrong(at, `${at} must be a string or a list of parts`);
  }
  const parts = given.map((part: unknown, i) => contentPart(part, `${at}[${i}]`));
  return parts.length === 0 ? "" : parts.length === 1 ? parts[0]!.text : parts;
}

function contentPart(part: unknown, at: string): ContentPart {
  if (!isObject(part)) throw wrong(at, `${at} must be an object`);
  const { type, text, refusal } = part;
  if (type === "refusal") return { type: "text", text: textOf(refusal ?? "") };
  if (typeof type !== "string") throw missing(`${at}.type`);
  if (!TEXT_PARTS.has(type)) {
    const message = `${at}.type: content of type '${type.slice(0, 40)}' is not supported`;
    throw new UnsupportedError(message, { param: `${at}.type` });
  }
  if (typeof text !== "string") throw missing(`${at}.text`);
  return { type: "text", text };
}
