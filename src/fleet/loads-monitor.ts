/** Asks workers for their load, and writes it on the board. */
import type { RankLoad } from "../engines/admin.ts";
import { EngineError } from "../engines/engine.ts";
import { Feature } from "../engines/features.ts";
import type { ReportedLoad } from "../threads/fleet-board.ts";
import type { Clock } from "./clock.ts";
import type { WorkerRecord } from "./worker-record.ts";

const DEADLINE_MS = 5000;
/** A worker without requests of ours is asked so much more rarely. */
const IDLE_FACTOR = 6;

export interface LoadBoard {
  running(slot: number): number;
  setLoad(slot: number, load: ReportedLoad): void;
}

/** What is known of one worker's ways. */
interface Asked {
  /** Rounds until it is asked again, if it stays idle. */
  rounds: number;
  /** It said that it has none. */
  never: boolean;
}

/** Those of a role that is not routed to are left alone: being asked ends older encode workers of TokenSpeed. */
const isAsked = ({ status, found, spec }: WorkerRecord): boolean =>
  (status === "ready" || status === "not_ready") &&
  found !== undefined &&
  (found.facts === undefined || (found.facts.features & Feature.loads) !== 0) &&
  found.facts?.role !== "encode" &&
  spec.workerType !== "encode";

export function watchLoads(
  workers: () => Iterable<WorkerRecord>,
  board: LoadBoard,
  everyMs: number,
  clock: Clock,
): { close(): void } {
  const known = new WeakMap<WorkerRecord, Asked>();
  let callOff = clock.after(everyMs, round);
  let isClosed = false;

  function round(): void {
    for (const record of workers()) if (isAsked(record)) lookAt(record);
    callOff = clock.after(everyMs, round);
  }

  function lookAt(record: WorkerRecord): void {
    const its = known.get(record) ?? { rounds: 0, never: false };
    known.set(record, its);
    if (its.never || (board.running(record.slot) === 0 && its.rounds-- > 0)) return;
    its.rounds = IDLE_FACTOR - 1;
    ask(record).catch((error: unknown) => {
      // whatever else is wrong with it is for the health checks to find
      its.never = error instanceof EngineError && error.kind === "unimplemented";
    });
  }

  async function ask(record: WorkerRecord): Promise<void> {
    const { life, slot } = record;
    const ranks = await life.contact?.loads(DEADLINE_MS);
    if (ranks === undefined || ranks.length === 0 || isClosed || !life.isAlive) return;
    record.loads = ranks;
    board.setLoad(slot, sumOf(ranks));
  }

  return {
    close() {
      isClosed = true;
      callOff();
    },
  };
}

/** The load of all ranks of a worker. A figure that one of them does not tell is not told. */
export function sumOf(ranks: readonly RankLoad[]): ReportedLoad {
  const sum = (of: (rank: RankLoad) => number | undefined): number | undefined => {
    let total = 0;
    for (const rank of ranks) {
      const value = of(rank);
      if (value === undefined) return undefined;
      total += value;
    }
    return total;
  };
  const usage = sum(({ tokenUsage }) => tokenUsage);
  return {
    running: sum(({ running }) => running) ?? 0,
    waiting: sum(({ waiting }) => waiting) ?? 0,
    waitingTokens: sum(({ waitingUncachedTokens }) => waitingUncachedTokens),
    usedTokens: sum(({ usedTokens }) => usedTokens),
    capacityTokens: sum(({ capacityTokens }) => capacityTokens),
    tokenUsage: usage && usage / ranks.length,
    throughput: sum(({ throughput }) => throughput),
  };
}
