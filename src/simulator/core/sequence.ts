import type { KvBlock } from "./kv-cache.ts";

/** What a sequence will say. The simulator knows it as soon as the prompt has been looked up in the cache. */
export interface OutputPlan {
  /** Tokens in all, a final EOS or stop token included; at least 1. */
  readonly length: number;
  /** The token at a position below `length`. */
  idAt(position: number): number;
  /** As the engine spells it: `stop`, `length`, or what a script says. */
  readonly finishReason: string;
  /** The last token is an EOS or a stop token. */
  readonly endsWithStop?: boolean;
  readonly matchedTokenId?: number;
  readonly matchedStop?: string;
}

/** One generation to run, as given to the core. */
export interface SequenceRequest {
  readonly prompt: Uint32Array;
  /** Called once, when the sequence first runs. */
  readonly plan: (cachedTokens: number) => OutputPlan;
  /** Least time between two tokens, in milliseconds; 0 = as the engine's steps come. */
  readonly tokenIntervalMs?: number;
  /** The KV of the prompt was fetched from another engine: only its last token is computed. */
  readonly isFetched?: boolean;
  /** Cached tokens as the engine shall tell them; what it has found unless given. */
  readonly cachedTokens?: number;
  /** When it has finished, its blocks stay until `letGo`. */
  readonly keepsBlocks?: boolean;
  /** A token left the engine. Called at the end of a step. */
  onToken(sequence: Sequence, id: number): void;
  /** The last token of the plan was given. Called right after its `onToken`. */
  onFinish(sequence: Sequence): void;
}

/** A generation inside the core. Only the core writes. */
export interface Sequence {
  readonly request: SequenceRequest;
  state: "waiting" | "running" | "finished" | "aborted";
  /** Set when it first ran. */
  plan: OutputPlan | undefined;
  /** Prompt tokens found in the cache when it first ran. */
  cachedTokens: number;
  /** Uncached prompt tokens as estimated on arrival. */
  readonly uncachedOnArrival: number;
  /** Tokens generated so far. */
  generated: number;
  /** Tokens of prompt and output whose KV is computed. */
  computed: number;
  /** Tokens to compute before it can decode: the prompt, and after a preemption what it had said. */
  target: number;
  blocks: KvBlock[];
  /** Chained hash of the last full block. */
  tailHash: number;
  hashedBlocks: number;
  nextTokenAt: number;
  preemptions: number;
}
