/** JSON schemas that make a model call tools where its own format cannot be forced. */
import { InvalidRequestError } from "../../errors.ts";
import type { ToolDefinition } from "../conversation.ts";
import { argumentSchema } from "./declaration.ts";

const DEFINITIONS = ["$defs", "definitions"] as const;

/** The schema of the arguments of one tool. */
export const namedSchema = (tool: ToolDefinition): unknown => argumentSchema(tool);

/**
 * The schema of a list of `{"name", "parameters"}`, with the definitions of all tools at the top, where their references look for them.
 * Throws InvalidRequestError where two tools define the same name in different ways, or refer to other places of their own schema.
 */
export function listSchema(tools: readonly ToolDefinition[], single: boolean): unknown {
  const definitions: Record<string, Record<string, unknown>> = {};
  const calls = tools.map((tool) => ({
    properties: { name: { type: "string", enum: [tool.name] }, parameters: withoutDefinitions(tool, definitions) },
    required: ["name", "parameters"],
  }));
  return {
    type: "array",
    minItems: 1,
    ...(single && { maxItems: 1 }),
    items: { type: "object", anyOf: calls },
    ...definitions,
  };
}

/** A tool's schema, of which the definitions are put among those of all. */
function withoutDefinitions(tool: ToolDefinition, all: Record<string, Record<string, unknown>>): unknown {
  const schema = argumentSchema(tool);
  if (typeof schema !== "object" || schema === null) return schema;
  const kept: Record<string, unknown> = { ...schema };
  for (const word of DEFINITIONS) {
    const own = kept[word];
    if (typeof own !== "object" || own === null) continue;
    delete kept[word];
    const merged = (all[word] ??= {});
    for (const [name, definition] of Object.entries(own)) {
      if (Object.hasOwn(merged, name) && JSON.stringify(merged[name]) !== JSON.stringify(definition))
        throw refused(tool, `defines '${name.slice(0, 100)}' in another way than a tool before it`);
      merged[name] = definition;
    }
  }
  const lost = foreignReference(schema);
  if (lost !== undefined) throw refused(tool, `refers to '${lost.slice(0, 100)}', which is not among its definitions`);
  return kept;
}

const refused = (tool: ToolDefinition, why: string): InvalidRequestError =>
  new InvalidRequestError(`The tools cannot be combined for this tool_choice: the schema of '${tool.name}' ${why}`, {
    param: "tools",
  });

/** A reference of a schema to a place of its own that is not among its definitions. */
function foreignReference(schema: object): string | undefined {
  const left: object[] = [schema];
  for (let each = left.pop(); each !== undefined; each = left.pop()) {
    const isList = Array.isArray(each);
    const to: unknown = isList ? undefined : (each as Readonly<Record<string, unknown>>)["$ref"];
    if (typeof to === "string" && to.startsWith("#") && !/^#\/(?:\$defs|definitions)\//.test(to)) return to;
    for (const inner of isList ? (each as readonly unknown[]) : Object.values(each))
      if (typeof inner === "object" && inner !== null) left.push(inner);
  }
  return undefined;
}
