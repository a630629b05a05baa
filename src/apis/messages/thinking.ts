/** How a request wants the model to think. */
import { wrong } from "./blocks.ts";
import type { CountTokensRequest } from "./schema.ts";

export interface Thinking {
  /** Turned off where nothing is said. */
  readonly isOn: boolean;
  /** The client gets the signature alone, which holds the thoughts. */
  readonly isOmitted: boolean;
}

/**
 * Thoughts are shown as they are, whatever kind of summary is asked for (`summarized`, `updates`). A budget is checked and no more: no engine's wire can carry it. `maxTokens`: undefined where nothing is generated.
 * Throws InvalidRequestError.
 */
export function thinkingOf(
  { thinking, tool_choice: choice }: Pick<CountTokensRequest, "thinking" | "tool_choice">,
  maxTokens: number | undefined,
): Thinking {
  if (thinking === undefined || thinking === null) return { isOn: false, isOmitted: false };
  const { type, budget_tokens: budget, display } = thinking;
  if (!["enabled", "disabled", "adaptive", "between_tools"].includes(type))
    throw wrong("thinking.type", `thinking.type must be enabled, disabled, adaptive or between_tools`);
  if (type === "enabled") {
    if (budget === undefined || budget === null)
      throw wrong("thinking.budget_tokens", "Missing required parameter: 'thinking.budget_tokens'");
    if (maxTokens !== undefined && budget >= maxTokens)
      throw wrong("thinking.budget_tokens", "thinking.budget_tokens must be less than max_tokens");
    if (choice?.type === "any" || choice?.type === "tool")
      throw wrong("tool_choice", "Thinking may not be enabled when tool_choice forces tool use");
  }
  return { isOn: type !== "disabled", isOmitted: display === "omitted" };
}
