/** What was learnt of an engine when it registered. Plain data: it goes to all threads. */
export interface EngineFacts {
  /** `vllm`, `sglang`, `trtllm`, `tokenspeed`, `mlx`; `openai` for an HTTP server. */
  readonly dialect: string;
  /** Age of its protocol, for people to read; decisions go by `features`. */
  readonly protocol: string;
  /** Bits of `Feature`. */
  readonly features: number;
  /** 0 = unknown, as for the numbers below. */
  readonly vocabSize: number;
  readonly contextLength: number;
  /** Most rows of top logprobs per token. */
  readonly maxLogprobs: number;
  readonly dataParallelSize: number;
  readonly maxRunningRequests: number;
  /** Tokens of a KV block. */
  readonly blockSize: number;
  readonly role: "regular" | "prefill" | "decode" | "encode";
  /** Whether it lets reasoning pass before it applies a constraint of the output; undefined: it did not say. */
  readonly waitsForReasoning: boolean | undefined;
  /** Everything else that it told, under SMG's names of labels. */
  readonly labels: Readonly<Record<string, string>>;
}
