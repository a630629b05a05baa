import type { ServeConfig } from "../config/serve-options.ts";
import type { Counted } from "../telemetry/registry.ts";
import { type BreakerRules, FleetBoard } from "../threads/fleet-board.ts";
import { LimitBoard, type LimitRules } from "../threads/limit-board.ts";
import { PrefixBoard } from "../threads/prefix-board.ts";
import type { PrefixWriter } from "../threads/prefix-types.ts";
import { StickyBoard } from "../threads/sticky-board.ts";

/** What all threads share of the fleet, in memory. */
export interface Boards {
  readonly fleet: FleetBoard;
  readonly limits: LimitBoard;
  /** Which caches hold what. */
  readonly prefix: PrefixBoard;
  /** Keys that stick to workers. */
  readonly sticky: StickyBoard;
}

/** Their memory, as it goes to a thread. */
export interface BoardsMemory extends Readonly<Record<Exclude<keyof Boards, "prefix">, SharedArrayBuffer>> {
  readonly prefix: WebAssembly.Memory;
}

export function createBoards(config: ServeConfig, threads: number): Boards {
  return {
    fleet: FleetBoard.create(threads, breakerRules(config)),
    limits: LimitBoard.create(threads, limitRules(config)),
    prefix: PrefixBoard.create(threads, config.prefixIndexMb),
    sticky: StickyBoard.create(),
  };
}

export const memoryOf = ({ fleet, limits, prefix, sticky }: Boards): BoardsMemory => ({
  fleet: fleet.memory,
  limits: limits.memory,
  prefix: prefix.memory,
  sticky: sticky.memory,
});

/** The boards that another thread created, in serving thread number `thread`. */
export const openBoards = ({ fleet, limits, prefix, sticky }: BoardsMemory, thread: number): Boards => ({
  fleet: FleetBoard.open(fleet),
  limits: LimitBoard.open(limits, thread),
  prefix: PrefixBoard.open(prefix),
  sticky: StickyBoard.open(sticky),
});

/** Takes back what a dead thread had booked, tried and held. */
export function forgetThread({ fleet, limits, prefix }: Boards, thread: number): void {
  fleet.forgetThread(thread);
  limits.forgetThread(thread);
  prefix.forgetThread(thread);
}

/** What control writes of the workers' caches: there is one. No key sticks to a member that was released. */
export function prefixWriter({ prefix, sticky }: Boards): PrefixWriter {
  const writer = prefix.writer();
  const release = (member: number): void => {
    writer.release(member);
    sticky.forgetMember(member);
  };
  return Object.create(writer, { release: { value: release } }) as PrefixWriter;
}

export const stickyGauges = ({ sticky }: Boards): Counted => ({
  smg_manual_policy_cache_entries: [{ labels: [], value: sticky.size() }],
});

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
