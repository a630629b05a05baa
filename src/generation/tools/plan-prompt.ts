import { reasoningFamily } from "../../parsers/names.ts";
import type { ChatTemplate, RenderedPrompt } from "../../template/chat-template.ts";
import type { Conversation } from "../conversation.ts";
import { renderPrompt, traitsFor, withoutThinking } from "../prompt.ts";
import { type PlanOptions, planTools, ReasoningInTheWayError, type ToolPlan } from "./plan.ts";

export interface PlannedPrompt extends RenderedPrompt {
  /** The prompt ends inside an open reasoning block. */
  readonly startsInReasoning: boolean;
  readonly plan: ToolPlan;
}

/**
 * The prompt of a conversation and the plan for its tools, where each may depend on the other: thinking is switched off for a tool call
 * that can't be forced after it. `opensReasoning` tells of a prompt's text whether it ends inside an open reasoning block.
 * Throws GatewayErrors.
 */
export function planPrompt(
  conversation: Conversation,
  template: ChatTemplate,
  {
    opensReasoning,
    now,
    ...options
  }: Omit<PlanOptions, "startsInReasoning" | "reasoningIsOver" | "callSample"> & {
    readonly opensReasoning: (text: string) => boolean;
    readonly now?: Date;
  },
): PlannedPrompt {
  const attempt = (wanted: Conversation): PlannedPrompt => {
    const prompt = renderPrompt(wanted, template, now === undefined ? {} : { now });
    const { text } = prompt;
    const startsInReasoning = opensReasoning(text);
    const closer = reasoningFamily(options.reasoningParser)?.close[0];
    const reasoningIsOver = closer !== undefined && text.trimEnd().endsWith(closer);
    const callSample = traitsFor(wanted, template).calls?.sample;
    return {
      ...prompt,
      startsInReasoning,
      plan: planTools(wanted, { ...options, startsInReasoning, reasoningIsOver, callSample }),
    };
  };
  try {
    return attempt(conversation);
  } catch (error) {
    const quiet = error instanceof ReasoningInTheWayError ? withoutThinking(conversation, template) : undefined;
    if (quiet === undefined) throw error;
    return attempt(quiet);
  }
}
