import { UnsupportedError } from "../errors.ts";
import { TOOL_FAMILIES, type ToolFamily } from "./families/index.ts";
import { REASONING_FAMILIES, type ReasoningFamily } from "./reasoning/index.ts";

/** A parser was named that does not exist. */
export class UnknownParserError extends UnsupportedError {
  constructor(kind: "tool call" | "reasoning", name: string, known: readonly string[]) {
    super(`There is no ${kind} parser '${name.slice(0, 100)}'; there are ${known.join(", ")}`);
  }
}

export const PASSTHROUGH = "passthrough";

const TOOL_ALIASES: Readonly<Record<string, string>> = {};
const REASONING_ALIASES: Readonly<Record<string, string>> = {};

/** All names that can be given, aliases included. */
export function parserNames(): { readonly reasoning: readonly string[]; readonly tool: readonly string[] } {
  return {
    reasoning: [PASSTHROUGH, ...Object.keys(REASONING_FAMILIES), ...Object.keys(REASONING_ALIASES)].sort(),
    tool: [PASSTHROUGH, ...Object.keys(TOOL_FAMILIES), ...Object.keys(TOOL_ALIASES)].sort(),
  };
}

const lookUp = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** The family behind a name; undefined for none. @throws UnknownParserError */
export function toolFamily(name: string | undefined): ToolFamily | undefined {
  if (name === undefined || name === PASSTHROUGH) return undefined;
  const family = lookUp(TOOL_FAMILIES, lookUp(TOOL_ALIASES, name) ?? name);
  if (family === undefined) throw new UnknownParserError("tool call", name, parserNames().tool);
  return family;
}

/** The family behind a name; undefined for none. @throws UnknownParserError */
export function reasoningFamily(name: string | undefined): ReasoningFamily | undefined {
  if (name === undefined || name === PASSTHROUGH) return undefined;
  const family = lookUp(REASONING_FAMILIES, lookUp(REASONING_ALIASES, name) ?? name);
  if (family === undefined) throw new UnknownParserError("reasoning", name, parserNames().reasoning);
  return family;
}
