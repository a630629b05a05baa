import type { DuplicateStyle } from "./kv-cache.ts";

/** Size and speed of the simulated GPU. Times are virtual milliseconds. */
export interface CoreOptions {
  /** Prompt tokens computed in a second. */
  readonly prefillTokensPerSecond: number;
  /** A decode step takes `decodeBaseMs + decodePerRequestMs * batch`. */
  readonly decodeBaseMs: number;
  readonly decodePerRequestMs: number;
  /** Prompt tokens that one step computes at most. */
  readonly prefillChunk: number;
  /** Capacity of the KV cache in tokens. */
  readonly kvTokens: number;
  readonly blockSize: number;
  readonly maxRunning: number;
  /** Eviction starts above this share of the blocks ... */
  readonly evictAbove: number;
  /** ... and ends at this one. */
  readonly evictTo: number;
  readonly prefixCaching: boolean;
  readonly duplicates: DuplicateStyle;
}

/** Defaults that make results comparable with other simulators of the field. */
export const defaultCoreOptions: CoreOptions = {
  prefillTokensPerSecond: 8000,
  decodeBaseMs: 6,
  decodePerRequestMs: 0.35,
  prefillChunk: 2048,
  kvTokens: 524_288,
  blockSize: 16,
  maxRunning: 256,
  evictAbove: 0.92,
  evictTo: 0.85,
  prefixCaching: true,
  duplicates: "shares",
};
