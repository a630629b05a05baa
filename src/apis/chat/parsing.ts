import type { Model } from "../../fleet/view.ts";
import type { ParsingOptions } from "../../generation/choice.ts";
import { parsingOptions } from "../../generation/parsing.ts";
import { opensReasoning } from "../../parsers/detect.ts";
import type { ChatRequest } from "./schema.ts";

/** Fields of a message that reasoning goes to, by the setting of that name. */
export const REASONING_FIELDS = {
  reasoning_content: ["reasoning_content"],
  reasoning: ["reasoning"],
  both: ["reasoning_content", "reasoning"],
} as const;

/** How the answers to a request with this prompt are read. `constrained`: the engine is told a grammar. */
export function chatParsing(
  body: ChatRequest,
  model: Model,
  prompt: string,
  constrained: boolean,
): ParsingOptions | undefined {
  const { reasoning: known, tool } = model.entry.parsers;
  const reasoning = body.separate_reasoning === false ? undefined : known;
  return parsingOptions(
    model.tokenizer,
    { reasoning, tool },
    {
      tools: [],
      parseTools: false,
      startsInReasoning: reasoning !== undefined && opensReasoning(prompt, reasoning),
      constrained,
      single: false,
      isForced: false,
    },
  );
}
