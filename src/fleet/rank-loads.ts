/** What workers tell of their load, rank by rank, and how it goes to the board: where ranks are chosen by themselves, each by its own row. */
import type { RankLoad } from "../engines/admin.ts";
import type { ReportedLoad } from "../threads/fleet-board.ts";
import type { WorkerRecord } from "./worker-record.ts";

export interface LoadBoard {
  running(slot: number): number;
  setLoad(slot: number, load: ReportedLoad): void;
}

/** All ranks told of themselves. */
export function tellLoads(record: WorkerRecord, ranks: readonly RankLoad[], board: LoadBoard): void {
  record.loads = ranks;
  const { slot, rankSlots } = record;
  if (rankSlots === undefined) {
    board.setLoad(slot, sumOf(ranks));
    return;
  }
  for (const load of ranks) {
    const its = load.rank === 0 ? slot : rankSlots[load.rank - 1];
    if (its !== undefined) board.setLoad(its, sumOf([load]));
  }
}

/** One rank told of itself without being asked; what it leaves out for brevity is as it told before. */
export function tellRankLoad(record: WorkerRecord, load: RankLoad, board: LoadBoard, now: number): void {
  const before = record.loads?.find(({ rank }) => rank === load.rank);
  const capacityTokens = load.capacityTokens ?? before?.capacityTokens;
  const usedTokens =
    load.usedTokens ??
    (capacityTokens === undefined || load.tokenUsage === undefined
      ? undefined
      : Math.round(load.tokenUsage * capacityTokens));
  const whole: RankLoad = {
    ...load,
    capacityTokens,
    usedTokens,
    cacheHitRate: load.cacheHitRate ?? before?.cacheHitRate,
    utilization: load.utilization ?? before?.utilization,
    maxRunning: load.maxRunning ?? before?.maxRunning,
  };
  record.loadToldAt = now;
  const others = (record.loads ?? []).filter(({ rank }) => rank !== load.rank);
  tellLoads(
    record,
    [...others, whole].toSorted((a, b) => a.rank - b.rank),
    board,
  );
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
