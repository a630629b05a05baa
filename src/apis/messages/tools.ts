/** Tools of a request, and how they are to be used. */
import { UnsupportedError } from "../../errors.ts";
import type { Conversation, ToolChoice, ToolDefinition } from "../../generation/conversation.ts";
import { asModelsWrite, rawMemberItemsSteps, rawMemberText } from "../../generation/raw-members.ts";
import { atOnce, type Steps } from "../../steps.ts";
import { checkedChoice, functionDefinition, isObject, losslessMember } from "../shared/tools.ts";
import { stringOf, wrong } from "./blocks.ts";
import type { DeclaredTool } from "./late-tools.ts";
import type { CountTokensRequest, SentBlock } from "./schema.ts";
import { type VendorTool, vendorTool } from "./vendor-tools.ts";

/** Anthropic takes 64 characters without dots; tools of MCP servers have both. */
const NAME = /^[a-zA-Z0-9_.-]{1,128}$/;

/**
 * The tools of a request. `raw`: its text, so that the model gets schemas with numbers and the order of keys as sent.
 * Throws InvalidRequestError.
 */
export function* declaredTools(
  { tools: sent }: Pick<CountTokensRequest, "tools">,
  raw: string | undefined,
): Steps<DeclaredTool[]> {
  const texts = raw === undefined ? [] : yield* rawMemberItemsSteps(raw, "tools");
  const tools: DeclaredTool[] = [];
  for (const [i, tool] of (sent ?? []).entries()) {
    if (i > 0) yield;
    tools.push(yield* declaredToolSteps(tool as SentBlock, texts[i], `tools[${i}]`));
  }
  const names = new Set<string>();
  tools.forEach(({ definition: { name } }, i) => {
    if (names.has(name)) throw wrong(`tools[${i}].name`, `tools[${i}].name: there is another tool '${name}'`);
    names.add(name);
  });
  return tools;
}

/** How the tools are to be used. `tools`: those that may be called. Throws InvalidRequestError. */
export function toolUse(
  { tools: sent, tool_choice: choice }: Pick<CountTokensRequest, "tools" | "tool_choice">,
  tools: readonly ToolDefinition[],
): Pick<Conversation, "tools" | "emptyToolList" | "toolChoice" | "parallelToolCalls"> {
  if (choice && (sent ?? []).length === 0) throw wrong("tool_choice", "tool_choice needs tools");
  return {
    tools,
    ...(sent?.length === 0 && tools.length === 0 && { emptyToolList: true }),
    toolChoice: checkedChoice(choice ? chosen(choice) : undefined, tools, "tool_choice.name"),
    parallelToolCalls: choice?.disable_parallel_tool_use !== true,
  };
}

function chosen({ type, name }: NonNullable<CountTokensRequest["tool_choice"]>): ToolChoice {
  switch (type) {
    case "auto":
    case "none":
      return { mode: type };
    case "any":
      return { mode: "required" };
    case "tool":
      if (!name) throw wrong("tool_choice.name", "Missing required parameter: 'tool_choice.name'");
      return { mode: "required", named: name };
    default:
      throw wrong("tool_choice.type", `tool_choice.type must be auto, any, tool or none, not '${type.slice(0, 40)}'`);
  }
}

/** `raw`: the text of the tool. */
export const declaredTool = (tool: SentBlock, raw: string | undefined, at: string): DeclaredTool =>
  atOnce(declaredToolSteps(tool, raw, at));

function* declaredToolSteps(tool: SentBlock, raw: string | undefined, at: string): Steps<DeclaredTool> {
  const isDeferred = tool["defer_loading"] === true;
  const type = tool.type ?? "custom";
  const known = type === "custom" ? undefined : implied(type, at);
  const name = nameOf(tool, at);
  const schema = known?.parameters ?? tool["input_schema"];
  if (!isObject(schema)) throw wrong(`${at}.input_schema`, `${at}.input_schema must be an object`);
  const given = typeof tool["description"] === "string" ? tool["description"] : undefined;
  const description = known?.description ?? given;
  const asSent = known === undefined && raw !== undefined ? yield* losslessMember(raw, "input_schema") : undefined;
  const told = { ...(description !== undefined && { description }), name };
  return {
    isDeferred,
    text() {
      const sent = known === undefined && raw !== undefined ? rawMemberText(raw, "input_schema") : undefined;
      const json = JSON.stringify(told).slice(0, -1);
      return asModelsWrite(`${json},"parameters":${sent ?? JSON.stringify(schema)}}`);
    },
    definition: functionDefinition(
      { name, description, parameters: schema, strict: tool["strict"] === true },
      {
        type: "function",
        function: { name, ...(description !== undefined && { description }), parameters: asSent ?? schema },
      },
    ),
  };
}

/** A tool that is named by its type. One that Anthropic's servers would run is refused: without it the answer means something else. */
function implied(type: string, at: string): VendorTool {
  const known = vendorTool(type);
  if (known !== undefined) return known;
  throw new UnsupportedError(`${at}.type: tools of the type '${type.slice(0, 60)}' are not supported`, {
    param: `${at}.type`,
  });
}

function nameOf(tool: SentBlock, at: string): string {
  const name = stringOf(tool, "name", at);
  if (!NAME.test(name))
    throw wrong(`${at}.name`, `${at}.name must be 1 to 128 letters, digits, underscores, hyphens or dots`);
  return name;
}
