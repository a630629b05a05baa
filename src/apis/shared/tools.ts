/** Tools as the vendors' APIs name them, and how they are chosen. */
import { InvalidRequestError } from "../../errors.ts";
import type { ToolChoice, ToolDefinition, ToolGrammar } from "../../generation/conversation.ts";
import { rawMemberSteps } from "../../generation/raw-members.ts";
import type { Steps } from "../../steps.ts";

const wrong = (param: string, message: string) => new InvalidRequestError(message, { param });

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A list of the request (`name`: of a member at its top) with numbers and order of keys as sent; undefined where its text is not known. */
export function* losslessList(raw: string | undefined, name: string): Steps<readonly unknown[] | undefined> {
  const value = raw === undefined ? undefined : yield* losslessMember(raw, name);
  return Array.isArray(value) ? value : undefined;
}

/** A member of the request with numbers and order of keys as sent. */
export function* losslessMember(raw: string, name: string): Steps<unknown> {
  try {
    return yield* rawMemberSteps(raw, name);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new InvalidRequestError(`${name}: ${error.message}`, { param: name, cause: error });
  }
}

/** The same where the text may not be known: `value` then. */
export function* lossless<T>(raw: string | undefined, name: string, value: T): Steps<T> {
  return raw === undefined ? value : (((yield* losslessMember(raw, name)) ?? value) as T);
}

/** A function as a client declares it. */
export interface DeclaredFunction {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly parameters?: unknown;
  readonly strict?: boolean | null | undefined;
}

/** `declaration`: what templates get (`ToolDefinition.declaration`). */
export function functionDefinition(given: DeclaredFunction, declaration: unknown): ToolDefinition {
  const { name, description, parameters, strict } = given;
  return {
    type: "function",
    name,
    strict: strict === true,
    declaration,
    ...(description && { description }),
    ...(isObject(parameters) && { parameters }),
  };
}

/** The format of a custom tool's text, in the nested form of Chat Completions or the flat one of Responses. Undefined: any text. */
export function grammarOf(format: Record<string, unknown>, at: string): ToolGrammar | undefined {
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

/** A choice by one of the words that OpenAI has for it. */
export function wordChoice(word: string, param: string): ToolChoice {
  if (word === "none" || word === "auto" || (word === "required" && param === "tool_choice")) return { mode: word };
  throw wrong(param, `${param} must be none, auto, required or an object, not '${word.slice(0, 40)}'`);
}

/** A choice by an object, in the nested form of Chat Completions or the flat one of Responses. */
export function objectChoice(given: Record<string, unknown>): ToolChoice {
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

/** A choice that the tools allow; undefined is `auto`. Refuses names that no tool has, and calls that must be made where there is no tool. */
export function checkedChoice(
  found: ToolChoice | undefined,
  tools: readonly Pick<ToolDefinition, "name">[],
  param: string,
): ToolChoice {
  if (tools.length === 0) {
    if (found !== undefined && found.mode === "required") throw wrong(param, `${param} needs tools`);
    return { mode: "none" };
  }
  const names = new Set(tools.map((tool) => tool.name));
  for (const name of [...(found?.allowed ?? []), ...(found?.named === undefined ? [] : [found.named])]) {
    if (!names.has(name)) throw wrong(param, `${param}: there is no tool '${name.slice(0, 128)}' among the request's`);
  }
  return found ?? { mode: "auto" };
}
