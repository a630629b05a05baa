/** Loads as the engines' HTTP servers tell them. */
import type { RankLoad } from "../admin.ts";

const UNKNOWN = {
  waitingUncachedTokens: undefined,
  usedTokens: undefined,
  capacityTokens: undefined,
  tokenUsage: undefined,
  throughput: undefined,
  cacheHitRate: undefined,
  utilization: undefined,
  maxRunning: undefined,
} as const;

type Members = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Members => typeof value === "object" && value !== null;
const numberOf = (object: Members, name: string): number | undefined => {
  const value = object[name];
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
};

/** SGLang's `GET /v1/loads`: the members of its GetLoads message. Undefined for what is none. */
export function sglangLoads(answer: unknown): RankLoad[] | undefined {
  const loads = isObject(answer) ? answer["loads"] : undefined;
  if (!Array.isArray(loads)) return undefined;
  return loads.filter(isObject).map((load, i) => ({
    rank: numberOf(load, "dp_rank") ?? i,
    running: numberOf(load, "num_running_reqs") ?? 0,
    waiting: numberOf(load, "num_waiting_reqs") ?? 0,
    waitingUncachedTokens: numberOf(load, "num_waiting_uncached_tokens"),
    usedTokens: numberOf(load, "num_used_tokens"),
    capacityTokens: numberOf(load, "max_total_num_tokens"),
    tokenUsage: numberOf(load, "token_usage"),
    throughput: numberOf(load, "gen_throughput"),
    cacheHitRate: numberOf(load, "cache_hit_rate"),
    utilization: numberOf(load, "utilization"),
    maxRunning: numberOf(load, "max_running_requests"),
  }));
}

/** `GET /get_load` of older SGLang servers: counts only, of one rank or of a list. */
export function oldSglangLoads(answer: unknown): RankLoad[] | undefined {
  const loads = (Array.isArray(answer) ? answer : [answer]).filter(isObject);
  if (loads.length === 0 || numberOf(loads[0]!, "num_reqs") === undefined) return undefined;
  return loads.map((load, i) => {
    const waiting = numberOf(load, "num_waiting_reqs") ?? 0;
    return {
      ...UNKNOWN,
      rank: numberOf(load, "dp_rank") ?? i,
      running: Math.max(0, (numberOf(load, "num_reqs") ?? 0) - waiting),
      waiting,
      usedTokens: numberOf(load, "num_tokens"),
    };
  });
}

/** Of llama.cpp's `GET /slots`: a request takes one; what waits is not told. */
export function llamaSlots(answer: unknown): RankLoad[] | undefined {
  if (!Array.isArray(answer)) return undefined;
  const running = answer.filter((slot) => isObject(slot) && slot["is_processing"] === true).length;
  return [{ ...UNKNOWN, rank: 0, running, waiting: 0, maxRunning: answer.length }];
}

/** Of vLLM's `GET /metrics`: one load for each of its engines. */
export function vllmMetrics(text: string): RankLoad[] | undefined {
  const byRank = new Map<number, { running?: number; waiting?: number; usage?: number }>();
  // name{labels} value, as Prometheus writes it
  for (const [, name, labels = "", value] of text.matchAll(
    /^vllm:(num_requests_running|num_requests_waiting|kv_cache_usage_perc|gpu_cache_usage_perc)(?:\{([^}\n]*)\})? (\S+)/gm,
  )) {
    const rank = Number(/(?:^|,)engine="(\d+)"/.exec(labels)?.[1] ?? 0);
    const of = byRank.get(rank) ?? {};
    byRank.set(rank, of);
    if (name === "num_requests_running") of.running = Number(value);
    else if (name === "num_requests_waiting") of.waiting = Number(value);
    else of.usage = Number(value);
  }
  if (byRank.size === 0) return undefined;
  return [...byRank].map(([rank, { running = 0, waiting = 0, usage }]) => ({
    ...UNKNOWN,
    rank,
    running,
    waiting,
    tokenUsage: usage,
  }));
}
