import type { Constraint } from "../../engines/engine.ts";
import type { Model } from "../../fleet/view.ts";
import type { ParsingOptions } from "../../generation/choice.ts";
import type { Conversation } from "../../generation/conversation.ts";
import { parsingOptions } from "../../generation/parsing.ts";
import { createForcedCallParser } from "../../generation/tools/forced-call.ts";
import { type PlannedPrompt, planPrompt } from "../../generation/tools/plan-prompt.ts";
import { opensReasoning } from "../../parsers/detect.ts";
import type { ChatRequest } from "./schema.ts";

/** Fields of a message that reasoning goes to, by the setting of that name. */
export const REASONING_FIELDS = {
  reasoning_content: ["reasoning_content"],
  reasoning: ["reasoning"],
  both: ["reasoning_content", "reasoning"],
} as const;

/** What every gRPC dialect so far can enforce. */
const ENGINE_CONSTRAINTS: ReadonlySet<Constraint["kind"]> = new Set(["json_schema", "structural_tag"]);

/** The prompt of a conversation, and what is to be done about its tools. `constraint`: of the request itself. */
export function chatPlan(
  conversation: Conversation,
  model: Model,
  template: NonNullable<Model["template"]>,
  constraint: Constraint | undefined,
): PlannedPrompt {
  const { reasoning, tool } = model.entry.parsers;
  return planPrompt(conversation, template(), {
    toolParser: tool,
    reasoningParser: reasoning,
    engineConstraints: ENGINE_CONSTRAINTS,
    isConstrained: constraint !== undefined,
    opensReasoning: (text) => reasoning !== undefined && opensReasoning(text, reasoning),
  });
}

/** How the answers to a planned prompt are read. `constrained`: the engine is told a grammar. */
export function chatParsing(
  body: ChatRequest,
  conversation: Conversation,
  model: Model,
  { plan, startsInReasoning }: PlannedPrompt,
  constrained: boolean,
): ParsingOptions | undefined {
  const { reasoning: known, tool } = model.entry.parsers;
  const reasoning = body.separate_reasoning === false ? undefined : known;
  const { output, parse, single, tools } = plan;
  return parsingOptions(
    model.tokenizer,
    { reasoning, tool },
    {
      tools,
      parseTools: parse,
      startsInReasoning: startsInReasoning && reasoning !== undefined,
      constrained,
      single,
      isForced: conversation.toolChoice.named !== undefined,
      ...(output !== "native" && {
        forced: (filter, singleTokenMarkers) =>
          createForcedCallParser(output, reasoning, {
            tools,
            startsInReasoning: startsInReasoning && reasoning !== undefined,
            singleTokenMarkers,
            parseTools: true,
            ...(filter !== undefined && { filter }),
          }),
      }),
    },
  );
}
