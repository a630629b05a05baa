import type { CallKind, FinishReason } from "../../generation/events.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";

/** Fields of a message that reasoning goes to, by the setting of that name. */
export const REASONING_FIELDS = {
  reasoning_content: ["reasoning_content"],
  reasoning: ["reasoning"],
  both: ["reasoning_content", "reasoning"],
} as const;

/** What every object and chunk of one chat answer has in common. */
export interface ChatAnswer {
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  /** The name that the client used. */
  readonly model: string;
  readonly choices: number;
  readonly promptTokens: number;
  readonly tokenizer: Tokenizer;
  readonly logprobs: boolean;
  readonly tokensAsIds: boolean;
  /** `return_token_ids`: the answer shows the prompt's and the choices' ids. */
  readonly promptTokenIds: Uint32Array | undefined;
  readonly includeUsage: boolean;
  readonly continuousUsage: boolean;
  /** The fields that reasoning goes to. */
  readonly reasoningFields: readonly ("reasoning_content" | "reasoning")[];
  /** The request named its tools as `functions`: a call is told as `function_call`. */
  readonly legacyCalls: boolean;
  /** The answer is read for reasoning or calls. */
  readonly parsed: boolean;
}

/** Reasoning under each of its names. */
export function reasoningFields(answer: ChatAnswer, text: string): Record<string, string> {
  return Object.fromEntries(answer.reasoningFields.map((name) => [name, text]));
}

/** A call, or a piece of one without its name, as the member of a message or delta that tells it. */
export function toolCallFields(kind: CallKind, text: string, name?: string): Record<string, unknown> {
  const named = name === undefined ? {} : { name };
  return kind === "custom" ? { custom: { ...named, input: text } } : { function: { ...named, arguments: text } };
}

export const finishReason = (answer: ChatAnswer, reason: FinishReason): string =>
  reason === "tool_calls" && answer.legacyCalls ? "function_call" : reason;

/** Where a choice ended by something the request named, engines and gateways show it: vLLM as stop_reason, SGLang and SMG as matched_stop. */
export function stopFields(matched: string | number | undefined): {
  stop_reason?: string | number;
  matched_stop?: string | number;
} {
  return matched === undefined ? {} : { stop_reason: matched, matched_stop: matched };
}
