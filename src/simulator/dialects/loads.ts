import type { PlainMessage } from "../../protobuf/codec.ts";
import type { SimulatorHost } from "../host.ts";

/** The figures of a rank, by the names that all dialects use. */
export function rankLoad({ driver }: SimulatorHost): Record<string, number> {
  const { options } = driver.core;
  const load = driver.core.load();
  const usage = load.blocksInUse / load.blocksTotal;
  return {
    dp_rank: 0,
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

/** A GetLoadsResponse around the ranks that were asked for. */
export function loadsReply(version: string, rank: PlainMessage, askedRank: unknown): PlainMessage {
  const loads = askedRank === undefined || askedRank === 0 ? [rank] : [];
  const number = (name: string): number => (loads.length > 0 ? (rank[name] as number) : 0);
  return {
    timestamp: new Date().toISOString().replace("Z", "000+00:00"),
    version,
    dp_rank_count: loads.length,
    loads,
    aggregate: {
      total_running_reqs: number("num_running_reqs"),
      total_waiting_reqs: number("num_waiting_reqs"),
      total_reqs: number("num_total_reqs"),
      avg_token_usage: number("token_usage"),
      avg_throughput: (rank["gen_throughput"] as number | undefined) ?? 0,
      avg_utilization: (rank["utilization"] as number | undefined) ?? 0,
    },
  };
}
