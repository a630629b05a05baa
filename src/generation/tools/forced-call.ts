/** Reads answers that a JSON schema forces to be tool calls: see `ToolPlan.output`. */
import { createOutputParser, type OutputParser, type ParserOptions } from "../../parsers/parser.ts";

/**
 * A parser for the bare arguments of one function, or for a list of `{name, parameters}`; reasoning may come before them. An
 * answer in the format of the model's own parsers, where no grammar was enforced after all, is read as ever.
 * `options.parseTools` does not matter. Throws UnknownParserError.
 */
export function createForcedCallParser(
  output: "json" | { readonly named: string },
  parsers: { readonly reasoning: string | undefined; readonly tool: string | undefined },
  options: Omit<ParserOptions, "forcedCalls" | "constrained">,
): OutputParser {
  const name = output === "json" ? undefined : output.named;
  // A model without a parser of its own may still put text before its calls.
  const tool = parsers.tool ?? (output === "json" ? "json" : undefined);
  return createOutputParser(parsers.reasoning, tool, {
    ...options,
    parseTools: true,
    constrained: true,
    forcedCalls: { name },
  });
}
