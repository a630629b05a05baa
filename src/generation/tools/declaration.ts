import type { ToolDefinition } from "../conversation.ts";

/** Arguments of a custom tool, which takes free text: models are told a function with one text. */
const CUSTOM_PARAMETERS = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
} as const;

/** Schema of a tool's arguments; an object of any kind where the client gave none. */
export function argumentSchema({ type, parameters }: ToolDefinition): unknown {
  if (type === "custom") return CUSTOM_PARAMETERS;
  return parameters ?? { type: "object" };
}

/** The same of a tool whose calls are held to it, an object of any kind of the others. */
export const strictSchema = (tool: ToolDefinition): unknown =>
  tool.strict ? argumentSchema(tool) : { type: "object" };

/** A tool as templates get it: in the form of Chat Completions. */
export function toolDeclaration(tool: ToolDefinition): unknown {
  if (tool.declaration !== undefined) return tool.declaration;
  const { name } = tool;
  const description = told(tool);
  const parameters = tool.type === "custom" ? CUSTOM_PARAMETERS : tool.parameters;
  return {
    type: "function",
    function: {
      name,
      ...(description !== undefined && { description }),
      ...(parameters !== undefined && { parameters }),
    },
  };
}

/** A tool's description, with the grammar of its text: models see it nowhere else. */
function told({ description, grammar }: ToolDefinition): string | undefined {
  if (grammar === undefined) return description;
  const kind = grammar.syntax === "lark" ? "follow this Lark grammar" : "match this regular expression in full";
  const rule = `The input must ${kind}:\n${grammar.definition}`;
  return description === undefined ? rule : `${description}\n\n${rule}`;
}

/** JSON text of the arguments that a custom tool's free text is told to models as. */
export const customArguments = (input: string): string => JSON.stringify({ input });
