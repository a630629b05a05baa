import type { Sequence } from "./sequence.ts";

/** One scheduler step: started at a virtual time, over `durationMs` later. */
export interface Step {
  readonly durationMs: number;
  /** Prompt tokens computed. */
  readonly prefillTokens: number;
  /** Sequences that get a token when the step ends. */
  readonly batch: readonly Sequence[];
}

export interface CoreLoad {
  readonly running: number;
  readonly waiting: number;
  /** Uncached prompt tokens of the waiting sequences, as estimated on arrival. */
  readonly waitingUncachedTokens: number;
  readonly blocksInUse: number;
  /** Of these, what finished prompts hold until another engine has fetched it. */
  readonly blocksPinned: number;
  readonly blocksCached: number;
  readonly blocksTotal: number;
  /** Tokens a second, smoothed. */
  readonly throughput: number;
  /** Share of prompt tokens found in the cache, smoothed; 0 to 1. */
  readonly hitRate: number;
  readonly preemptions: number;
  readonly evictedBlocks: number;
}
