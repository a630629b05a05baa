import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { Conversation, ToolChoice, ToolDefinition, ToolGrammar } from "../../generation/conversation.ts";
import { rawMember } from "../../generation/raw-members.ts";
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
export function chatTools(
  body: ToolFields,
  raw: string | undefined,
): Pick<Conversation, "tools" | "emptyToolList" | "toolChoice" | "parallelToolCalls"> {
  const tools = definitions(body, raw);
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

function definitions(body: ToolFields, raw: string | undefined): ToolDefinition[] {
  const { tools, functions } = body;
  if (tools && tools.length > 0) {
    if (functions && functions.length > 0) throw wrong("functions", "functions and tools exclude each other");
    const declarations = losslessList(raw, "tools") ?? tools;
    return tools.map((tool, i) => definition(tool, declarations[i], `tools[${i}]`));
  }
  const declarations = losslessList(raw, "functions") ?? functions ?? [];
  return (functions ?? []).map((given, i) =>
    functionDefinition(given, { type: "function", function: declarations[i] }),
  );
}

function losslessList(raw: string | undefined, name: string): readonly unknown[] | undefined {
  const value = raw === undefined ? undefined : losslessMember(raw, name);
  return Array.isArray(value) ? value : undefined;
}

/** A member of the request with numbers and order of keys as sent. */
export function losslessMember(raw: string, name: string): unknown {
  try {
    return rawMember(raw, name);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new InvalidRequestError(`${name}: ${error.message}`, { param: name, cause: error });
  }
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

/** In the nested form of Chat Completions, and in the flat one of Responses. Undefined: any text. */
function grammarOf(format: Record<string, unknown>, at: string): ToolGrammar | undefined {
  const { type, grammar } = format;
  if (type === undefined || type === "text") return undefined;
  if (type !== "grammar") throw wrong(`${at}.type`, `${at}.type must be text or grammar`);
  const isNested = isObject(grammar);
  const where = isNested ? `${at}.grammar` : at;
  const { syntax, definition } = isNested ? grammar : format;
  if (syntax !== "lark" && syntax !== "regex") throw wrong(`${where}.syntax`, `${where}.syntax must be lark or regex`);
  if (typeof definition !== "string" || definition.trim() === "")
    throw wrong(`${where}.definition`, `${where}.definition must be a non-empty string`);
  return { syntax, definition };
}

function functionDefinition(given: NonNullable<ChatTool["function"]>, declaration: unknown): ToolDefinition {
  const { name, description, parameters, strict } = given;
  return {
    type: "function",
    name,
    strict: strict === true,
    declaration,
    ...(description && { description }),
    ...(parameters && { parameters }),
  };
}

function choice(body: ToolFields, tools: readonly ToolDefinition[]): ToolChoice {
  const old = !body.tools || body.tools.length === 0;
  const given = old && body.function_call ? legacyChoice(body.function_call) : (body.tool_choice ?? undefined);
  const param = old && body.function_call ? "function_call" : "tool_choice";
  const found =
    given === undefined ? undefined : typeof given === "string" ? wordChoice(given, param) : objectChoice(given);
  if (tools.length === 0) {
    if (found !== undefined && found.mode === "required") throw wrong(param, `${param} needs tools`);
    return { mode: "none" };
  }
  for (const name of [...(found?.allowed ?? []), ...(found?.named === undefined ? [] : [found.named])]) {
    if (!tools.some((tool) => tool.name === name))
      throw wrong(param, `${param}: there is no tool '${name.slice(0, 128)}' among the request's`);
  }
  return found ?? { mode: "auto" };
}

type ObjectChoice = Record<string, unknown>;

const legacyChoice = (given: NonNullable<ChatRequest["function_call"]>): string | ObjectChoice =>
  typeof given === "string" ? given : { type: "function", function: given };

function wordChoice(word: string, param: string): ToolChoice {
  if (word === "none" || word === "auto" || (word === "required" && param === "tool_choice")) return { mode: word };
  throw wrong(param, `${param} must be none, auto, required or an object, not '${word.slice(0, 40)}'`);
}

/** In the nested form of Chat Completions, and in the flat one of Responses. */
function objectChoice(given: ObjectChoice): ToolChoice {
  const { type } = given;
  if (type === "function" || type === "custom") {
    return { mode: "required", named: nameOf(given, `tool_choice.${type}.name`) };
  }
  if (type !== "allowed_tools")
    throw wrong("tool_choice.type", "tool_choice.type must be function, custom or allowed_tools");
  const nested = given["allowed_tools"];
  const at = nested === undefined ? "tool_choice" : "tool_choice.allowed_tools";
  const { mode, tools } = (isObject(nested) ? nested : given) as { mode?: unknown; tools?: unknown };
  if (mode !== "auto" && mode !== "required") throw wrong(`${at}.mode`, `${at}.mode must be auto or required`);
  if (!Array.isArray(tools) || tools.length === 0) throw wrong(`${at}.tools`, `${at}.tools must be a list of tools`);
  const allowed = tools.map((tool: unknown, i) => nameOf(tool, `${at}.tools[${i}].function.name`));
  return { mode, allowed: [...new Set(allowed)] };
}

function nameOf(tool: unknown, param: string): string {
  const { type, name, ...more } = isObject(tool) ? tool : {};
  const inner = more[String(type)];
  const found = isObject(inner) ? inner["name"] : name;
  if (typeof found !== "string" || found === "") throw wrong(param, `Missing required parameter: '${param}'`);
  return found;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
