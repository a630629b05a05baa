import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { Conversation, ToolChoice, ToolDefinition } from "../../generation/conversation.ts";
import { atOnce, type Steps } from "../../steps.ts";
import {
  checkedChoice,
  functionDefinition,
  grammarOf,
  losslessList,
  objectChoice,
  wordChoice,
} from "../shared/tools.ts";
import type { ChatRequest, ChatTool, ConversationRequest } from "./schema.ts";

const wrong = (param: string, message: string) => new InvalidRequestError(message, { param });

/** The fields that say which tools there are and how they are to be used. */
type ToolFields = Pick<
  ConversationRequest,
  "tools" | "tool_choice" | "parallel_tool_calls" | "functions" | "function_call"
>;

/**
 * Tools and their choice, from `tools` or from the older `functions`, of which one is called at a time. `raw`: the text of the request, from which templates get the
 * tools with the numbers and the order of keys as sent. Throws InvalidRequestError.
 */
export const chatTools = (body: ToolFields, raw: string | undefined): ChatTools => atOnce(chatToolsSteps(body, raw));

type ChatTools = Pick<Conversation, "tools" | "emptyToolList" | "toolChoice" | "parallelToolCalls">;

/** The same in steps. */
export function* chatToolsSteps(body: ToolFields, raw: string | undefined): Steps<ChatTools> {
  const tools = yield* definitions(body, raw);
  return {
    tools,
    ...(tools.length === 0 && body.tools && { emptyToolList: true }),
    toolChoice: choice(body, tools),
    parallelToolCalls: body.parallel_tool_calls !== false && !isLegacy(body),
  };
}

/** Are the tools given as `functions`? Calls are told as `function_call` then. */
export const isLegacy = ({ tools, functions }: Pick<ToolFields, "tools" | "functions">): boolean =>
  (tools ?? []).length === 0 && (functions ?? []).length > 0;

function* definitions(body: ToolFields, raw: string | undefined): Steps<ToolDefinition[]> {
  const { tools, functions } = body;
  if (tools && tools.length > 0) {
    if (functions && functions.length > 0) throw wrong("functions", "functions and tools exclude each other");
    const declarations = (yield* losslessList(raw, "tools")) ?? tools;
    return tools.map((tool, i) => definition(tool, declarations[i], `tools[${i}]`));
  }
  const declarations = (yield* losslessList(raw, "functions")) ?? functions ?? [];
  return (functions ?? []).map((given, i) =>
    functionDefinition(given, { type: "function", function: declarations[i] }),
  );
}

function definition(tool: ChatTool, declaration: unknown, at: string): ToolDefinition {
  if (tool.type === "function") {
    if (!tool.function) throw wrong(`${at}.function`, `Missing required parameter: '${at}.function'`);
    return functionDefinition(tool.function, declaration);
  }
  if (tool.type !== "custom") {
    throw new UnsupportedError(`${at}.type: tools of the type '${tool.type.slice(0, 40)}' are not supported`, {
      param: `${at}.type`,
    });
  }
  const { custom } = tool;
  if (!custom) throw wrong(`${at}.custom`, `Missing required parameter: '${at}.custom'`);
  const { name, description, format } = custom;
  const grammar = format ? grammarOf(format, `${at}.custom.format`) : undefined;
  return { type: "custom", name, strict: false, ...(description && { description }), ...(grammar && { grammar }) };
}

function choice(body: ToolFields, tools: readonly ToolDefinition[]): ToolChoice {
  const old = !body.tools || body.tools.length === 0;
  const given = old && body.function_call ? legacyChoice(body.function_call) : (body.tool_choice ?? undefined);
  const param = old && body.function_call ? "function_call" : "tool_choice";
  const found =
    given === undefined ? undefined : typeof given === "string" ? wordChoice(given, param) : objectChoice(given);
  return checkedChoice(found, tools, param);
}

const legacyChoice = (given: NonNullable<ChatRequest["function_call"]>): string | Record<string, unknown> =>
  typeof given === "string" ? given : { type: "function", function: given };
