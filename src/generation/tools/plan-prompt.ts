import { reasoningFamily } from "../../parsers/names.ts";
import { atOnce, inTurns, type Steps } from "../../steps.ts";
import type { ChatTemplate, RenderedPrompt } from "../../template/chat-template.ts";
import type { Conversation } from "../conversation.ts";
import { renderInTurns, renderPrompt, traitsFor, withoutThinking } from "../prompt.ts";
import { type PlanOptions, planToolsSteps, ReasoningInTheWayError, type ToolPlan } from "./plan.ts";

export interface PlannedPrompt extends RenderedPrompt {
  /** The prompt ends inside an open reasoning block. */
  readonly startsInReasoning: boolean;
  readonly plan: ToolPlan;
}

export type PromptOptions = Omit<PlanOptions, "startsInReasoning" | "reasoningIsOver" | "callSample"> & {
  readonly opensReasoning: (text: string) => boolean;
  readonly now?: Date;
};

/**
 * The prompt of a conversation and the plan for its tools, where each may depend on the other: thinking is switched off for a tool call
 * that can't be forced after it. `opensReasoning` tells of a prompt's text whether it ends inside an open reasoning block.
 * Throws GatewayErrors.
 */
export function planPrompt(conversation: Conversation, template: ChatTemplate, options: PromptOptions): PlannedPrompt {
  const attempt = (wanted: Conversation) =>
    atOnce(planned(wanted, renderPrompt(wanted, template, options), template, options));
  try {
    return attempt(conversation);
  } catch (error) {
    return attempt(quietOrThrow(error, conversation, template));
  }
}

/** The same for a long conversation: other work of the thread has its turn between the steps. */
export async function planPromptInTurns(
  conversation: Conversation,
  template: ChatTemplate,
  options: PromptOptions,
): Promise<PlannedPrompt> {
  const attempt = async (wanted: Conversation) =>
    inTurns(planned(wanted, await renderInTurns(wanted, template, options), template, options));
  try {
    return await attempt(conversation);
  } catch (error) {
    return await attempt(quietOrThrow(error, conversation, template));
  }
}

function* planned(
  conversation: Conversation,
  prompt: RenderedPrompt,
  template: ChatTemplate,
  { opensReasoning, ...options }: PromptOptions,
): Steps<PlannedPrompt> {
  const { text } = prompt;
  const startsInReasoning = opensReasoning(text);
  const closer = reasoningFamily(options.reasoningParser)?.close[0];
  const reasoningIsOver = closer !== undefined && text.trimEnd().endsWith(closer);
  const callSample = traitsFor(conversation, template).calls?.sample;
  yield;
  const plan = yield* planToolsSteps(conversation, { ...options, startsInReasoning, reasoningIsOver, callSample });
  return { ...prompt, startsInReasoning, plan };
}

/** The conversation to try instead, without thinking. Throws the error where there is none, or the error is another one. */
function quietOrThrow(error: unknown, conversation: Conversation, template: ChatTemplate): Conversation {
  const quiet = error instanceof ReasoningInTheWayError ? withoutThinking(conversation, template) : undefined;
  if (quiet === undefined) throw error;
  return quiet;
}
