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
  const { loads = [] } = record;
  const { rank, running, waiting, waitingUncachedTokens, tokenUsage, throughput } = load;
  const before = loads.length === 1 && loads[0]!.rank === rank ? loads[0] : loads.find((its) => its.rank === rank);
  const capacityTokens = load.capacityTokens ?? before?.capacityTokens;
  const usedTokens =
    load.usedTokens ??
    (capacityTokens === undefined || tokenUsage === undefined ? undefined : Math.round(tokenUsage * capacityTokens));
  const whole: RankLoad = {
    rank,
    running,
    waiting,
    waitingUncachedTokens,
    usedTokens,
    capacityTokens,
    tokenUsage,
    throughput,
    cacheHitRate: load.cacheHitRate ?? before?.cacheHitRate,
    utilization: load.utilization ?? before?.utilization,
    maxRunning: load.maxRunning ?? before?.maxRunning,
  };
  record.loadToldAt = now;
  const isAlone = loads.length === 0 || (loads.length === 1 && before !== undefined);
  tellLoads(record, isAlone ? [whole] : withRank(loads, whole), board);
}

const withRank = (loads: readonly RankLoad[], load: RankLoad): readonly RankLoad[] =>
  [...loads.filter(({ rank }) => rank !== load.rank), load].toSorted((a, b) => a.rank - b.rank);

/** The load of all ranks of a worker. A figure that one of them does not tell is not told. */
export function sumOf(ranks: readonly RankLoad[]): ReportedLoad {
  const first = ranks[0];
  if (first !== undefined && ranks.length === 1) {
    const { running, waiting, waitingUncachedTokens, usedTokens, capacityTokens, tokenUsage, throughput } = first;
    return {
      running,
      waiting,
      waitingTokens: waitingUncachedTokens,
      usedTokens,
      capacityTokens,
      tokenUsage,
      throughput,
    };
  }
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
