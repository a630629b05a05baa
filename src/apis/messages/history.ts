/** The messages of a request as those of a conversation. */
import type { Message, TextPart } from "../../generation/conversation.ts";
import { Turns } from "../../generation/turns.ts";
import { PIECE_ITEMS, type Steps } from "../../steps.ts";
import { givenContent, givenText, isServerBlock, plain, stringOf, traceOf, wrong } from "./blocks.ts";
import { type InputTexts, inputTexts } from "./inputs.ts";
import type { LateTools } from "./late-tools.ts";
import type { MessagesRequest, SentBlock, SentMessage } from "./schema.ts";
import { systemText } from "./system.ts";

/** The thoughts that a signature is for; `visible`: the text beside it. Undefined: it is not ours, or not of this text. */
export type OpenThinking = (signature: string, visible: string) => string | undefined;

export interface History {
  readonly messages: readonly Message[];
  /** The model is to go on with the last message. */
  readonly isPrefill: boolean;
}

export interface HistoryOptions {
  readonly open: OpenThinking;
  /** Learns of the tools that the messages bring in. */
  readonly late: LateTools;
  /** The text of the request, so that prompts print numbers and the order of keys as sent. */
  readonly raw: string | undefined;
}

interface Reading extends HistoryOptions {
  readonly turns: Turns;
  readonly inputs: InputTexts;
}

/**
 * Thinking counts only with a signature of ours, which a client that alters the text does not have. System messages that are for one turn
 * of the user's alone go with the next one. Throws InvalidRequestError.
 */
export function* readHistory(
  { messages, system }: Pick<MessagesRequest, "messages" | "system">,
  options: HistoryOptions,
): Steps<History> {
  const turns = new Turns({ joinUsers: true });
  const reading: Reading = { ...options, turns, inputs: inputTexts(options.raw) };
  const lastUser = messages.findLastIndex(({ role }) => role === "user");
  const lead = systemText(system, "system");
  if (lead !== undefined) turns.system(lead);
  for (const [i, message] of messages.entries()) {
    if (message.clear_at !== "next_user_message" || i > lastUser) yield* readMessage(message, i, reading);
    if (i % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
  }
  const isPrefill = messages.at(-1)?.role === "assistant" && turns.messages.at(-1)?.role === "assistant";
  if (isPrefill) checkPrefill(messages.at(-1)!, `messages[${messages.length - 1}].content`);
  return { messages: turns.messages, isPrefill };
}

function* readMessage({ role, content }: SentMessage, i: number, reading: Reading): Steps<void> {
  const at = `messages[${i}].content`;
  const { turns, late } = reading;
  if (role === "system") {
    const text = systemText(content, at, late);
    if (text !== undefined) turns.system(text);
    return;
  }
  if (content === undefined || content === null) throw wrong(at, `Missing required parameter: '${at}'`);
  const blocks: readonly SentBlock[] =
    typeof content === "string" ? [{ type: "text", text: content }] : (content as readonly SentBlock[]);
  if (role === "user") {
    yield* readUser(blocks, at, reading);
  } else if (role === "assistant") {
    for (const [k, block] of blocks.entries()) {
      yield* readAssistant(block, i, k, reading);
      if (k % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
    }
  } else {
    throw wrong(`messages[${i}].role`, `messages[${i}].role: '${role.slice(0, 40)}' is not user, assistant or system`);
  }
}

/** Results stand right behind the calls that they answer, whatever was written before them. */
function* readUser(blocks: readonly SentBlock[], at: string, { turns, late }: Reading): Steps<void> {
  const tell = (names: readonly string[]) => late.tell(names);
  for (const [k, block] of blocks.entries()) {
    if (k % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
    if (block.type !== "tool_result") continue;
    const content = givenContent(block["content"], `${at}[${k}].content`, tell);
    turns.result(stringOf(block, "tool_use_id", `${at}[${k}]`), content, {
      ...(block["is_error"] === true && { isError: true }),
    });
  }
  const texts: TextPart[] = [];
  for (const [k, block] of blocks.entries()) {
    if (k % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
    if (block.type !== "tool_result") texts.push({ type: "text", text: givenText(block, `${at}[${k}]`) });
  }
  if (texts.length > 0) turns.user(plain(texts));
  else if (blocks.length === 0) throw wrong(at, `${at} is empty`);
}

function* readAssistant(block: SentBlock, i: number, k: number, { turns, inputs, open }: Reading): Steps<void> {
  const at = `messages[${i}].content[${k}]`;
  switch (block.type) {
    case "text": {
      const text = stringOf(block, "text", at);
      if (text !== "") turns.assistant(text);
      return;
    }
    case "thinking": {
      const text = open(textOr(block["signature"]), textOr(block["thinking"]));
      if (text !== undefined) turns.reasoning(text);
      return;
    }
    case "redacted_thinking": {
      const text = open(textOr(block["data"]), "");
      if (text !== undefined) turns.reasoning(text);
      return;
    }
    case "tool_use": {
      const input = block["input"] ?? {};
      if (typeof input !== "object" || Array.isArray(input))
        throw wrong(`${at}.input`, `${at}.input must be an object`);
      const text = block["input"] === undefined ? "{}" : yield* inputs(i, k, input);
      turns.call({ id: stringOf(block, "id", at), name: stringOf(block, "name", at), arguments: text });
      return;
    }
    default:
      if (!isServerBlock(block))
        throw wrong(`${at}.type`, `${at}.type: '${block.type.slice(0, 40)}' is no block of an assistant`);
      turns.assistant(traceOf(block));
  }
}

const textOr = (value: unknown): string => (typeof value === "string" ? value : "");

/** Only text can be gone on with. */
function checkPrefill({ content }: SentMessage, at: string): void {
  if (typeof content === "string" || !content) return;
  const last = content.at(-1);
  if (last === undefined || last.type === "text") return;
  const param = `${at}[${content.length - 1}]`;
  throw wrong(
    param,
    last.type === "tool_use"
      ? `${param}: each tool_use needs a tool_result in the next message`
      : `${param}: a last message of the assistant must end with text`,
  );
}
