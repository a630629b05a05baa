/** GetLoads: the dialects that have it name its fields alike. */
import type { PlainMessage } from "../protobuf/codec.ts";
import type { RankLoad } from "./admin.ts";

/**
 * The loads of a GetLoadsResponse. Older servicers fill a few fields only and leave the rest at 0: where nothing tells the capacity, what
 * is counted of it is not known either. `tellsUncached`: a 0 there is told.
 */
export function rankLoads(reply: PlainMessage, tellsUncached: boolean): RankLoad[] {
  return (reply["loads"] as PlainMessage[]).map((load) => {
    const number = (name: string): number => (load[name] as number | undefined) ?? 0;
    const capacity = number("max_total_num_tokens");
    const ofCapacity = (name: string): number | undefined =>
      capacity > 0 || number(name) > 0 ? number(name) : undefined;
    const waiting = number("num_waiting_reqs");
    const uncached = number("num_waiting_uncached_tokens");
    return {
      rank: number("dp_rank"),
      running: number("num_running_reqs"),
      waiting,
      waitingUncachedTokens: uncached > 0 || waiting === 0 || tellsUncached ? uncached : undefined,
      usedTokens: ofCapacity("num_used_tokens"),
      capacityTokens: capacity > 0 ? capacity : undefined,
      tokenUsage: number("token_usage"),
      throughput: ofCapacity("gen_throughput"),
      cacheHitRate: ofCapacity("cache_hit_rate"),
      utilization: ofCapacity("utilization"),
      maxRunning: number("max_running_requests") || undefined,
    };
  });
}
