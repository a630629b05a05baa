/** Tools of a request, and how they are to be used. */
import { UnsupportedError } from "../../errors.ts";
import type { Conversation, ToolChoice, ToolDefinition } from "../../generation/conversation.ts";
import { checkedChoice, functionDefinition, isObject, losslessList } from "../shared/tools.ts";
import { stringOf, wrong } from "./blocks.ts";
import type { CountTokensRequest, SentBlock } from "./schema.ts";
import { vendorTool } from "./vendor-tools.ts";

/** Anthropic takes 64 characters without dots; tools of MCP servers have both. */
const NAME = /^[a-zA-Z0-9_.-]{1,128}$/;

type Tools = Pick<Conversation, "tools" | "emptyToolList" | "toolChoice" | "parallelToolCalls">;

/** `raw`: the text of the request, so that templates get schemas with numbers and the order of keys as sent. Throws InvalidRequestError. */
export function messageTools(body: Pick<CountTokensRequest, "tools" | "tool_choice">, raw: string | undefined): Tools {
  const sent = (body.tools ?? []) as readonly Readonly<Record<string, unknown>>[];
  const asSent = losslessList(raw, "tools");
  const tools = sent.map((tool, i) => definition(tool as SentBlock, asSent?.[i], `tools[${i}]`));
  const names = new Set<string>();
  tools.forEach(({ name }, i) => {
    if (names.has(name)) throw wrong(`tools[${i}].name`, `tools[${i}].name: there is another tool '${name}'`);
    names.add(name);
  });
  const choice = body.tool_choice ?? undefined;
  if (choice !== undefined && tools.length === 0) throw wrong("tool_choice", "tool_choice needs tools");
  return {
    tools,
    ...(tools.length === 0 && body.tools && { emptyToolList: true }),
    toolChoice: checkedChoice(choice && chosen(choice), tools, "tool_choice.name"),
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

function definition(tool: SentBlock, asSent: unknown, at: string): ToolDefinition {
  const type = tool.type ?? "custom";
  if (type !== "custom") return implied(tool, type, at);
  const name = nameOf(tool, at);
  const schema = tool["input_schema"];
  if (!isObject(schema)) throw wrong(`${at}.input_schema`, `${at}.input_schema must be an object`);
  const description = typeof tool["description"] === "string" ? tool["description"] : undefined;
  const parameters = asSent instanceof Map ? ((asSent.get("input_schema") as unknown) ?? schema) : schema;
  const declaration = {
    type: "function",
    function: { name, ...(description !== undefined && { description }), parameters },
  };
  return functionDefinition({ name, description, parameters: schema, strict: tool["strict"] === true }, declaration);
}

/** A tool that is named by its type. One that Anthropic's servers would run is refused: without it the answer means something else. */
function implied(tool: SentBlock, type: string, at: string): ToolDefinition {
  const known = vendorTool(type);
  if (known === undefined) {
    throw new UnsupportedError(`${at}.type: tools of the type '${type.slice(0, 60)}' are not supported`, {
      param: `${at}.type`,
    });
  }
  const name = nameOf(tool, at);
  const { description, parameters } = known;
  return functionDefinition(
    { name, description, parameters, strict: tool["strict"] === true },
    { type: "function", function: { name, description, parameters } },
  );
}

function nameOf(tool: SentBlock, at: string): string {
  const name = stringOf(tool, "name", at);
  if (!NAME.test(name))
    throw wrong(`${at}.name`, `${at}.name must be 1 to 128 letters, digits, underscores, hyphens or dots`);
  return name;
}
