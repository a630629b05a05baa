/** Items of hosted tools in a history: what models are told of them is a call and its result, as of any other tool. */
import type { ToolCall } from "../../generation/conversation.ts";
import { isObject } from "../shared/tools.ts";
import type { Loose } from "./schema.ts";

/** A call, its result, or both. */
export interface ToolTrace {
  readonly id: string;
  readonly call?: ToolCall;
  readonly output?: string;
}

/** A value as text: JSON, unless it is a text. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

/** Calls whose results are items of their own: the member that holds what is asked for. */
const CALLS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    local_shell_call: "action",
    shell_call: "action",
    apply_patch_call: "operation",
    computer_call: "action",
    tool_search_call: "arguments",
    program: "code",
  }),
);

/** Results of such calls: the member that holds them. */
const OUTPUTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    local_shell_call_output: "output",
    shell_call_output: "output",
    apply_patch_call_output: "output",
    computer_call_output: "output",
    tool_search_output: "tools",
    program_output: "result",
  }),
);

const PLAIN_CALLS: ReadonlySet<unknown> = new Set(["function_call", "custom_tool_call"]);

/** Whether an item of this type without a `call_id` is a call that its result names by `id`, or such a result. */
export const pairsById = (type: unknown): boolean =>
  PLAIN_CALLS.has(type) || (typeof type === "string" && (CALLS.has(type) || OUTPUTS.has(type)));

/** Calls that hold their results: the members with what was asked for, and with what came of it. */
const WHOLE: ReadonlyMap<string, readonly [asked: string, gave: string]> = new Map([
  ["mcp_call", ["arguments", "output"]],
  ["file_search_call", ["queries", "results"]],
  ["code_interpreter_call", ["code", "outputs"]],
]);

/** Undefined for an item that models can't be told, or that says nothing. */
export function traceOf(type: string, item: Loose): ToolTrace | undefined {
  const id = [item["call_id"], item["id"]].find((each) => typeof each === "string") ?? "";
  const asked = CALLS.get(type);
  if (asked !== undefined) {
    const given = item[asked] ?? (type === "computer_call" ? item["actions"] : undefined);
    return { id, call: { id, name: type.replace(/_call$/, ""), arguments: argumentsOf(given, asked) } };
  }
  const gave = OUTPUTS.get(type);
  if (gave !== undefined) return { id, output: outputOf(type, item[gave], item["status"]) };
  const whole = WHOLE.get(type);
  if (whole === undefined) return undefined;
  const result = item[whole[1]] ?? item["error"];
  if (result === undefined || result === null) return undefined;
  const name = type === "mcp_call" ? textOf(item["name"] ?? "mcp") : type.replace(/_call$/, "");
  return { id, call: { id, name, arguments: argumentsOf(item[whole[0]], whole[0]) }, output: textOf(result) };
}

/** Arguments of calls are objects. */
function argumentsOf(given: unknown, name: string): string {
  if (isObject(given)) return JSON.stringify(given);
  if (typeof given === "string" && name === "arguments") return given;
  return JSON.stringify({ [name]: given ?? null });
}

function outputOf(type: string, output: unknown, status: unknown): string {
  if (type === "computer_call_output") return "[screenshot]"; // its image is of no use to a model of text
  if (type === "tool_search_output")
    return JSON.stringify(
      Array.isArray(output) ? output.map((tool: unknown) => (isObject(tool) ? tool["name"] : tool)) : [],
    );
  return output === undefined || output === null ? textOf(status ?? "") : textOf(output);
}
