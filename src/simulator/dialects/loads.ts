import type { PlainMessage } from "../../protobuf/codec.ts";
import type { CoreOptions } from "../core/options.ts";
import type { CoreLoad } from "../core/step.ts";

/** The figures of a rank, by the names that all dialects use. */
export function rankLoad(rank: number, load: CoreLoad, options: CoreOptions): Record<string, number> {
  const usage = load.blocksInUse / load.blocksTotal;
  return {
    dp_rank: rank,
    num_running_reqs: load.running,
    num_waiting_reqs: load.waiting,
    num_total_reqs: load.running + load.waiting,
    num_used_tokens: load.blocksInUse * options.blockSize,
    max_total_num_tokens: load.blocksTotal * options.blockSize,
    token_usage: usage,
    gen_throughput: load.throughput,
    cache_hit_rate: load.hitRate,
    utilization: usage,
    max_running_requests: options.maxRunning,
    num_waiting_uncached_tokens: load.waitingUncachedTokens,
  };
}

/** A GetLoadsResponse around the ranks that were asked for; all unless one is named. */
export function loadsReply(version: string, ranks: readonly PlainMessage[], askedRank: unknown): PlainMessage {
  const loads = askedRank === undefined ? ranks : ranks.filter((_, rank) => rank === askedRank);
  const sum = (name: string): number =>
    loads.reduce((total, rank) => total + ((rank[name] as number | undefined) ?? 0), 0);
  const average = (name: string): number => (loads.length > 0 ? sum(name) / loads.length : 0);
  return {
    timestamp: new Date().toISOString().replace("Z", "000+00:00"),
    version,
    dp_rank_count: loads.length,
    loads,
    aggregate: {
      total_running_reqs: sum("num_running_reqs"),
      total_waiting_reqs: sum("num_waiting_reqs"),
      total_reqs: sum("num_total_reqs"),
      avg_token_usage: average("token_usage"),
      avg_throughput: average("gen_throughput"),
      avg_utilization: average("utilization"),
    },
  };
}
