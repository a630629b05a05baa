import type { CallKind, FinishReason } from "../../generation/events.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import type { StreamedAnswer } from "../openai/answer.ts";

/** Fields of a message that reasoning goes to, by the setting of that name. */
export const REASONING_FIELDS = {
  reasoning_content: ["reasoning_content"],
  reasoning: ["reasoning"],
  both: ["reasoning_content", "reasoning"],
} as const;

/** What every object and chunk of one chat answer has in common. */
export interface ChatAnswer extends StreamedAnswer {
  readonly choices: number;
  readonly promptTokens: number;
  readonly tokenizer: Tokenizer;
  readonly logprobs: boolean;
  readonly tokensAsIds: boolean;
  /** `return_token_ids`: the answer shows the prompt's and the choices' ids. */
  readonly promptTokenIds: Uint32Array | undefined;
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
