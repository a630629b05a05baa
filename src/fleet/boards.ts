import type { ServeConfig } from "../config/serve-options.ts";
import { type BreakerRules, FleetBoard } from "../threads/fleet-board.ts";
import { LimitBoard, type LimitRules } from "../threads/limit-board.ts";

/** What all threads share of the fleet, in memory. */
export interface Boards {
  readonly fleet: FleetBoard;
  readonly limits: LimitBoard;
}

export function createBoards(config: ServeConfig, threads: number): Boards {
  return {
    fleet: FleetBoard.create(threads, breakerRules(config)),
    limits: LimitBoard.create(threads, limitRules(config)),
  };
}

function breakerRules(config: ServeConfig): BreakerRules | undefined {
  if (config.disableCircuitBreaker) return undefined;
  return {
    failures: config.cbFailureThreshold,
    rate: config.cbFailureRate,
    successes: config.cbSuccessThreshold,
    timeoutMs: config.cbTimeoutDurationSecs * 1000,
    windowMs: config.cbWindowDurationSecs * 1000,
  };
}

function limitRules(config: ServeConfig): LimitRules {
  const { maxConcurrentRequests } = config;
  return {
    running: maxConcurrentRequests < 0 ? undefined : maxConcurrentRequests,
    waiting: config.queueSize,
    retriesPerRequest: config.retryBudgetPercent / 100,
    retriesPerSec: config.retryBudgetMinPerSec,
  };
}
