/** What operators ask of an engine, besides generations. All reject with EngineErrors. */
export interface EngineAdmin {
  /** grpc.health.v1's answer for the engine's own service, else for the whole server; of HTTP engines that of their health path. */
  serving(deadlineMs: number): Promise<"serving" | "not_serving" | "unimplemented">;
  /** One entry a data-parallel rank. "unimplemented" where the engine has none. */
  loads(deadlineMs: number): Promise<readonly RankLoad[]>;
  /** Waits up to `timeoutSecs` for the engine to be idle, where it can. */
  flushCache(timeoutSecs: number, deadlineMs: number): Promise<Outcome>;
  startProfile(ask: ProfileAsk, deadlineMs: number): Promise<Outcome>;
  stopProfile(deadlineMs: number): Promise<Outcome>;
}

export interface Outcome {
  readonly success: boolean;
  readonly message: string;
}

export interface ProfileAsk {
  readonly outputDir?: string | undefined;
  readonly startStep?: number | undefined;
  readonly numSteps?: number | undefined;
  readonly activities?: readonly string[] | undefined;
  readonly withStack?: boolean | undefined;
  readonly recordShapes?: boolean | undefined;
  readonly profileByStage?: boolean | undefined;
}

/** Load of one rank. `undefined` = the engine does not tell. */
export interface RankLoad {
  readonly rank: number;
  readonly running: number;
  readonly waiting: number;
  /** Tokens of waiting prompts that no cache holds. */
  readonly waitingUncachedTokens: number | undefined;
  readonly usedTokens: number | undefined;
  /** Tokens that the KV cache holds at most. */
  readonly capacityTokens: number | undefined;
  /** Share of the KV cache in use, 0 to 1. */
  readonly tokenUsage: number | undefined;
  /** Tokens per second. */
  readonly throughput: number | undefined;
  readonly cacheHitRate: number | undefined;
  readonly utilization: number | undefined;
  readonly maxRunning: number | undefined;
}
