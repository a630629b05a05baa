/** DeepSeek V3.2. The format is that of the model's published `encoding/encoding_dsv32.py`. */
import { PIECE_ITEMS, type Steps } from "../../steps.ts";
import { truthy, type Value } from "../engine/values.ts";
import type { PreparedMessage } from "../prepare-messages.ts";
import { type Conversation, encoderTemplate, refuse } from "./conversation.ts";
import { ASSISTANT, BOS, EOS, formatText, THINK, THINK_END, toolsTextV32, USER, V32_TAGS } from "./deepseek-text.ts";
import { callsText, schemaLines, strictArguments } from "./dsml.ts";
import { callsOf, contentText, field, json, reasoningOf, roleOf } from "./fields.ts";
import { thinkingOf } from "./thinking.ts";

/** Text blocks of a message; a blank line joins them in this format. */
export const BLANK = "\n\n";

/** Roles whose turns are the user's. */
const isUser = (message: PreparedMessage): boolean => ["user", "developer"].includes(roleOf(message));

/** The request's tools belong to the leading system or developer message; without one an empty system message is put in. */
export function withTools(messages: readonly PreparedMessage[], tools: readonly Value[]): readonly PreparedMessage[] {
  const [first, ...rest] = messages;
  if (tools.length === 0 || first === undefined) return messages;
  if (["system", "developer"].includes(roleOf(first))) return [new Map(first).set("tools", tools), ...rest];
  return [
    new Map<string, Value>([
      ["role", "system"],
      ["tools", tools],
    ]),
    ...messages,
  ];
}

/** The tools and the format of the answer that a message declares, each behind a blank line. */
export function declarations(message: PreparedMessage, toolsText: (schemas: string) => string): string {
  const tools = field(message, "tools");
  const format = field(message, "response_format");
  return (
    (truthy(tools) ? BLANK + toolsText(schemaLines(tools as readonly Value[])) : "") +
    (truthy(format) ? BLANK + formatText(json(format)) : "")
  );
}

/**
 * Dropping old reasoning also drops the developer messages before the last user turn, and the published encoder then fails; none of them
 * is to be lost in silence.
 */
function refuseOldDevelopers(messages: readonly PreparedMessage[]): void {
  const last = messages.findLastIndex(isUser);
  if (messages.some((message, at) => at < last && roleOf(message) === "developer"))
    refuse(
      "With reasoning, a developer message must be the last of the user's turns; earlier instructions are system messages",
    );
}

/** The message whose calls tool messages behind it answer. */
interface Caller {
  readonly at: number;
  readonly message: PreparedMessage;
  /** How many calls it has; counted once. */
  count?: number;
}

interface Prompt {
  readonly messages: readonly PreparedMessage[];
  /** Of each message the last one before it that is no tool's. */
  readonly callers: readonly (Caller | undefined)[];
  readonly thinking: boolean;
  readonly lastUser: number;
  readonly addGenerationPrompt: boolean;
}

export const deepseekV32 = encoderTemplate(function* (conversation) {
  const prompt = promptOf(conversation);
  let text = BOS;
  for (const [at, message] of prompt.messages.entries()) {
    text += yield* messageText(message, at, prompt);
    if (at % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
  }
  return text;
});

function promptOf({ messages: given, tools, variables, addGenerationPrompt }: Conversation): Prompt {
  const thinking = thinkingOf(variables, false);
  const messages = withTools(given, tools);
  const declared = messages.some(
    (message) => ["system", "developer"].includes(roleOf(message)) && truthy(field(message, "tools")),
  );
  const drops = thinking && !declared && truthy(variables.get("drop_thinking") ?? true);
  if (drops) refuseOldDevelopers(messages);
  const lastUser = messages.findLastIndex(isUser);
  return { messages, callers: callersOf(messages), thinking, lastUser, addGenerationPrompt };
}

function callersOf(messages: readonly PreparedMessage[]): readonly (Caller | undefined)[] {
  let last: Caller | undefined;
  return messages.map((message, at) => {
    const before = last;
    if (roleOf(message) !== "tool") last = { at, message };
    return before;
  });
}

function* messageText(message: PreparedMessage, at: number, prompt: Prompt): Steps<string> {
  const content = contentText(message, BLANK);
  switch (roleOf(message)) {
    case "system":
      return content + declarations(message, toolsTextV32);
    case "developer":
      if (content === "") return refuse("A developer message must have content");
      return turn(`${declarations(message, toolsTextV32)}${BLANK}# The user's message is: ${content}`, at, prompt);
    case "user":
      return turn(content, at, prompt);
    case "tool":
      return resultText(content, at, prompt);
    case "assistant":
      return yield* assistantText(message, content, at, prompt);
  }
  return refuse(`The model's prompt format has no role '${roleOf(message)}'`);
}

const isOpen = (at: number, { messages, addGenerationPrompt }: Prompt): boolean =>
  addGenerationPrompt || at < messages.length - 1;

function turn(text: string, at: number, prompt: Prompt): string {
  if (!isOpen(at, prompt)) return USER + text;
  return USER + text + ASSISTANT + (prompt.thinking && at === prompt.lastUser ? THINK : THINK_END);
}

function resultText(content: string, at: number, prompt: Prompt): string {
  const caller = prompt.callers[at];
  if (caller === undefined || roleOf(caller.message) !== "assistant")
    return refuse("A tool message must follow an assistant message");
  caller.count ??= callsOf(caller.message).length;
  const { count } = caller;
  const number = at - caller.at;
  if (number > count) return refuse("A tool message has no tool call before it");
  const text = `${number === 1 ? `${BLANK}<function_results>` : ""}\n<result>${content}</result>`;
  if (number < count) return text;
  const next = prompt.thinking && at >= prompt.lastUser ? THINK : THINK_END;
  return `${text}\n</function_results>${isOpen(at, prompt) ? BLANK + next : ""}`;
}

function* assistantText(message: PreparedMessage, content: string, at: number, prompt: Prompt): Steps<string> {
  const calls = callsOf(message);
  const reasoning = reasoningOf(message);
  const reasons = prompt.thinking && at > prompt.lastUser;
  if (reasons && reasoning === "" && calls.length === 0)
    return refuse("An assistant message after the last user message must have reasoning or tool calls");
  return (
    (reasons ? reasoning + THINK_END : "") +
    content +
    (calls.length === 0 ? "" : BLANK + (yield* callsText(calls, V32_TAGS, strictArguments))) +
    EOS
  );
}
