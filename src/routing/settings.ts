/** What operators may set of routing; names and defaults are SMG's where it has them. Plain data, the same in all threads. */
export interface RoutingSettings {
  /** Share of a prompt that must be known for what is only guessed of a cache to count. */
  readonly cacheThreshold: number;
  /** The fleet is out of balance when the most loaded worker has more requests than the least by both: so many, and so many times. */
  readonly balanceAbsThreshold: number;
  readonly balanceRelThreshold: number;
  /** Shares of a KV cache in use, from 0 to 1; 1 = never. */
  readonly balanceTokenUsageThreshold: number;
  readonly overloadTokenUsageThreshold: number;
  /** Of `manual`. */
  readonly maxIdleMs: number;
  readonly assignmentMode: "random" | "min_load" | "min_group";
  /** Other gateways are told to whom a key was given. */
  readonly sharesKeys: boolean;
  /** Of `prefix_hash`. */
  readonly prefixTokenCount: number;
  readonly prefixHashLoadFactor: number;
  /** Of `least_load`. */
  readonly kvPressureWeight: number;
  readonly defaultThroughput: number;
  readonly meanPrefillTokens: number;
  /** Of `bucket`. */
  readonly bucketAdjustMs: number;
}
