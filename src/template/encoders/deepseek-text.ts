/** The fixed texts of DeepSeek's prompt formats, letter for letter as the models' published encoders have them. */

export const BOS = "<｜begin▁of▁sentence｜>";
export const EOS = "<｜end▁of▁sentence｜>";
export const USER = "<｜User｜>";
export const ASSISTANT = "<｜Assistant｜>";
export const SYSTEM = "<｜System｜>";
export const LATEST_REMINDER = "<｜latest_reminder｜>";
export const IMAGE = "<｜deepseek_image｜>";
export const THINK = "<think>";
export const THINK_END = "</think>";

/** Tokens that ask for one of the model's own side tasks. */
export const TASKS: ReadonlyMap<string, string> = new Map(
  ["action", "query", "authority", "domain", "title", "read_url"].map((task) => [task, `<｜${task}｜>`]),
);

/** Names of the tags that calls are written in. */
export interface Tags {
  readonly block: string;
  readonly invoke: string;
  readonly parameter: string;
}

const dsml = (name: string): Tags => ({
  block: `｜DSML｜${name}`,
  invoke: "｜DSML｜invoke",
  parameter: "｜DSML｜parameter",
});
export const V32_TAGS = dsml("function_calls");
export const V4_TAGS = dsml("tool_calls");
/** A space stands before each name. */
export const V41_TAGS: Tags = { block: "｜DSML｜ calls", invoke: "｜DSML｜ invoke", parameter: "｜DSML｜ parameter" };

const example = ({ block, invoke, parameter }: Tags, name: string): string => `<${block}>
<${invoke} name="$${name}">
<${parameter} name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</${parameter}>
...
</${invoke}>
<${invoke} name="$${name}2">
...
</${invoke}>
</${block}>`;

/** @param schemas the functions, one JSON text a line. */
export function toolsTextV32(schemas: string): string {
  const { block } = V32_TAGS;
  return `## Tools
You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<${block}>" block like the following as part of your reply to the user:
${example(V32_TAGS, "FUNCTION_NAME")}
String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types (numbers, booleans, arrays, objects).
If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. Here is an example:
<${block}>
...
</${block}>
<function_results>
...
</function_results>
${THINK}...thinking about results${THINK_END}
Here are the functions available in JSONSchema format:
<functions>
${schemas}
</functions>
`;
}

/** @param schemas the functions, one JSON text a line. */
export const toolsTextV4 = (schemas: string, tags: Tags): string => `## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<${tags.block}>" block like the following:

${example(tags, "TOOL_NAME")}

String parameters should be specified as is and set \`string="true"\`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set \`string="false"\`.

If thinking_mode is enabled (triggered by ${THINK}), you MUST output your complete reasoning inside ${THINK}...${THINK_END} BEFORE any tool calls or final response.

Otherwise, output directly after ${THINK_END} with tool calls or final response.

### Available Tool Schemas

${schemas}

You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.
`;

export const formatText = (schema: string): string =>
  `## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n${schema}`;

const THOROUGH = `Reasoning Effort: Absolute maximum with no shortcuts permitted.
You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.
Explicitly write out your entire deliberation process, documenting every intermediate step, considered alternative, and rejected hypothesis to ensure absolutely no assumption is left unchecked.

`;
const RELENTLESS = `Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.
You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: exhaustively decompose the problem into its most fundamental components, trace every causal chain to its root, and resolve the underlying cause rather than any surface symptom.
Do not stop reasoning until you have independently verified the solution from multiple angles and are certain that no assumption remains unchecked and no error remains undiscovered.

`;

/** What leads the prompt, by effort. The first release of V4 has two levels; clients' other levels go to the next of them. */
export const V4_EFFORTS: ReadonlyMap<string, string> = new Map([
  ["low", ""],
  ["medium", ""],
  ["high", ""],
  ["xhigh", THOROUGH],
  ["max", THOROUGH],
]);
/** The refresh of 2026-07-31 shifted the levels: its `low` adds nothing, `max` is new. */
export const V4_0731_EFFORTS: ReadonlyMap<string, string> = new Map([
  ["low", ""],
  ["medium", ""],
  ["high", THOROUGH],
  ["xhigh", THOROUGH],
  ["max", RELENTLESS],
]);
/** V4.1 counts from 1 to 100. */
export const V41_BUDGETS: ReadonlyMap<string, number> = new Map([
  ["low", 50],
  ["high", 75],
  ["xhigh", 75],
  ["max", 100],
]);
export const budgetText = (budget: number): string =>
  `Reasoning Effort: ${budget} (range 1-100, the higher the value, the more thorough the reasoning)\n\n`;
