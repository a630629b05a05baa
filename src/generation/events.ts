import type { TokenLogprobs } from "../engines/engine.ts";
import type { GatewayError } from "../errors.ts";

export interface TopLogprob {
  readonly id: number;
  readonly logprob: number;
}

/** One generated token with its logprob. */
export interface LogprobEntry extends TopLogprob {
  /** Alternatives at this position, highest first. */
  readonly top: readonly TopLogprob[];
}

/** `tool_calls`: it ended by itself, and there is a complete call. */
export type FinishReason = "stop" | "length" | "tool_calls";

/** `custom`: the tool takes free text. */
export type CallKind = "function" | "custom";

/**
 * A piece of what a model says. `call` counts the tool calls of a choice from 0; the arguments of a call, joined, are one JSON text, or
 * the free text of a custom tool.
 */
export type OutputPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | {
      readonly type: "tool_start";
      readonly call: number;
      readonly id: string;
      readonly name: string;
      readonly kind: CallKind;
    }
  | { readonly type: "tool_arguments"; readonly call: number; readonly text: string }
  /** The call is complete. Of one that was cut off nothing more comes. */
  | { readonly type: "tool_end"; readonly call: number };

/**
 * What a generation yields, in order. For each choice: any number of `output`, then one `finish`. Then, once for all choices,
 * `usage`, and nothing more; or `error` at any point, which is the last event.
 */
export type GenerationEvent =
  | {
      readonly type: "output";
      readonly index: number;
      /** In the order of generation; may be empty when only ids or logprobs are told. */
      readonly parts: readonly OutputPart[];
      /** The ids that came since the last event of this choice; only where they were asked for. */
      readonly tokenIds: readonly number[] | undefined;
      readonly logprobs: readonly LogprobEntry[] | undefined;
    }
  | {
      readonly type: "finish";
      readonly index: number;
      readonly reason: FinishReason;
      /** The stop string or stop token of the request that ended it. */
      readonly matchedStop: string | number | undefined;
    }
  | {
      readonly type: "usage";
      readonly promptTokens: number;
      readonly cachedTokens: number;
      readonly completionTokens: number;
      /** Those of the completion tokens that were reasoning. */
      readonly reasoningTokens: number;
    }
  | { readonly type: "error"; readonly error: GatewayError };

export interface GenerationSink {
  /** The engine has begun: comes once, before everything else but an error. For usage that is told at the start. */
  begun?(counts: { readonly promptTokens: number; readonly cachedTokens: number }): void;
  /** Logprobs of the prompt's tokens, where they were asked for; before the first output. The first token has none. */
  promptLogprobs?(logprobs: TokenLogprobs): void;
  emit(event: GenerationEvent): void;
  /** Takes an `output` that is a text and nothing else, as most are. Where it is missing, that is emitted like any other. */
  emitText?(index: number, text: string): void;
  /** What was emitted so far belongs together: send it now. */
  flush(): void;
}
