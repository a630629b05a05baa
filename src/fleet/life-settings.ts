/** How a worker is watched: by the settings of the gateway, but for what is said of the worker itself. */
import type { ServeConfig } from "../config/serve-options.ts";
import type { Thresholds } from "./health.ts";
import type { WorkerHealth } from "./worker-spec.ts";

export interface LifeSettings {
  readonly thresholds: Thresholds;
  readonly startupTimeoutMs: number;
  /** Longest pause between two tries to register. */
  readonly startupPauseMs: number;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly stallMs: number;
  /** It is ready for good once it has registered. */
  readonly isUnwatched: boolean;
}

export function lifeSettings(config: ServeConfig, health: WorkerHealth = {}): LifeSettings {
  const secs = (own: number | undefined, all: number) => (own ?? all) * 1000;
  return {
    thresholds: {
      failures: health.failureThreshold ?? config.healthFailureThreshold,
      successes: health.successThreshold ?? config.healthSuccessThreshold,
    },
    startupTimeoutMs: config.workerStartupTimeoutSecs * 1000,
    startupPauseMs: config.workerStartupCheckInterval * 1000,
    intervalMs: secs(health.checkIntervalSecs, config.healthCheckIntervalSecs),
    timeoutMs: secs(health.timeoutSecs, config.healthCheckTimeoutSecs),
    stallMs: config.workerStallSecs * 1000,
    isUnwatched: health.disable ?? config.disableHealthCheck,
  };
}
