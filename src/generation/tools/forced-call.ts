/** Reads answers that a grammar forces to be tool calls: see `ToolPlan.output`. */
import type { ParserSink } from "../../parsers/events.ts";
import { createOutputParser, type OutputParser, type ParserOptions } from "../../parsers/parser.ts";
import type { ForcedOutput } from "./plan.ts";

/**
 * A parser for the bare arguments of one function, for a list of `{name, parameters}`, or for the bare text of one custom tool;
 * reasoning may come before them. An answer in the format of the model's own parsers, where no JSON was enforced after all, is read as
 * ever. `options.parseTools` does not matter. Throws UnknownParserError.
 */
export function createForcedCallParser(
  output: ForcedOutput,
  parsers: { readonly reasoning: string | undefined; readonly tool: string | undefined },
  options: Omit<ParserOptions, "forcedCalls" | "constrained">,
): OutputParser {
  if (typeof output !== "string" && "text" in output) return textParser(output.text, parsers.reasoning, options);
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

/**
 * All visible text is the input of one call of the custom tool `name`, told as the arguments that such a tool has. A text has no end
 * of its own: the call is complete when the answer ends, also where it ends by its length.
 */
function textParser(
  name: string,
  reasoning: string | undefined,
  options: Omit<ParserOptions, "forcedCalls" | "constrained">,
): OutputParser {
  const parser = createOutputParser(reasoning, undefined, { ...options, parseTools: false, constrained: true });
  let isOpen = false;
  const begin = (sink: ParserSink) => {
    if (isOpen) return;
    isOpen = true;
    sink.toolStart(0, name, undefined);
    sink.toolArguments(0, '{"input":"');
  };
  const into = (sink: ParserSink): ParserSink => ({
    text(delta) {
      begin(sink);
      sink.toolArguments(0, JSON.stringify(delta).slice(1, -1));
    },
    reasoning: (delta) => sink.reasoning(delta),
    toolStart: () => {},
    toolArguments: () => {},
    toolEnd: () => {},
  });
  return {
    markers: parser.markers,
    push: (text, sink) => parser.push(text, into(sink)),
    special: (text, sink) => parser.special(text, into(sink)),
    finish(sink) {
      parser.finish(into(sink));
      begin(sink);
      sink.toolArguments(0, '"}');
      sink.toolEnd(0);
    },
  };
}
