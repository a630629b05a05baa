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

export type FinishReason = "stop" | "length";

/**
 * What a generation yields, in order. For each choice: any number of `text`, then one `finish`. Then, once for all choices,
 * `usage`, and nothing more; or `error` at any point, which is the last event.
 */
export type GenerationEvent =
  | {
      readonly type: "text";
      readonly index: number;
      /** May be empty when only ids or logprobs are told. */
      readonly text: string;
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
    }
  | { readonly type: "error"; readonly error: GatewayError };

export interface GenerationSink {
  emit(event: GenerationEvent): void;
  /** What was emitted so far belongs together: send it now. */
  flush(): void;
}
