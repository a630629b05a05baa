/** What is done when a worker fails, and how long anybody waits, as set. */
import type { ServeConfig } from "../../config/serve-options.ts";
import type { AttemptRules } from "./attempts.ts";

/** Milliseconds; 0 = no limit. */
export interface TimeLimits {
  /** From the sending of a request to its first token. */
  readonly firstTokenMs: number;
  /** Between two of its tokens. */
  readonly interTokenMs: number;
}

export interface ModelLimits extends TimeLimits {
  /** Silence after which a second worker is asked as well; 0 = never. */
  readonly hedgeAfterMs: number;
}

export interface DispatchPolicy {
  readonly rules: AttemptRules;
  /** `model`: its id. */
  limitsOf(model: string): ModelLimits;
}

const NO_LIMITS: ModelLimits = { firstTokenMs: 0, interTokenMs: 0, hedgeAfterMs: 0 };

/** What is done without settings. */
export const DEFAULT_POLICY: DispatchPolicy = {
  rules: { attempts: 5, initialBackoffMs: 50, maxBackoffMs: 30_000, multiplier: 1.5, jitter: 0.2 },
  limitsOf: () => NO_LIMITS,
};

export function dispatchPolicy(config: ServeConfig): DispatchPolicy {
  const forAll: ModelLimits = {
    firstTokenMs: config.firstTokenTimeoutSecs * 1000,
    interTokenMs: config.interTokenTimeoutSecs * 1000,
    hedgeAfterMs: config.hedgeAfterMs,
  };
  return {
    rules: {
      attempts: config.disableRetries ? 1 : config.retryMaxRetries,
      initialBackoffMs: config.retryInitialBackoffMs,
      maxBackoffMs: config.retryMaxBackoffMs,
      multiplier: config.retryBackoffMultiplier,
      jitter: config.retryJitterFactor,
    },
    limitsOf: () => forAll,
  };
}
