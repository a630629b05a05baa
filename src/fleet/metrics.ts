import type { RankLoad } from "../engines/admin.ts";
import type { MetricName } from "../telemetry/metric-table.ts";
import type { MetricFamily } from "../telemetry/metrics.ts";
import type { Counted, Series } from "../telemetry/registry.ts";
import type { FleetBoard } from "../threads/fleet-board.ts";
import type { PrefixStats } from "../threads/prefix-types.ts";
import { cacheStats, type LevelStats } from "../tokenizer/cache/stats.ts";
import type { ModelEntry } from "./snapshot.ts";
import { slotsOf, type WorkerRecord } from "./worker-record.ts";

const CACHE_METRICS: readonly (Omit<MetricFamily, "samples"> & { readonly value: (stats: LevelStats) => number })[] = [
  {
    name: "hits_total",
    type: "counter",
    help: "Prompts whose token ids, or those of a beginning, were known.",
    value: ({ hits }) => hits,
  },
  {
    name: "misses_total",
    type: "counter",
    help: "Prompts that were looked up in vain.",
    value: ({ misses }) => misses,
  },
  {
    name: "insertions_total",
    type: "counter",
    help: "Texts or beginnings of texts that became known.",
    value: ({ insertions }) => insertions,
  },
  {
    name: "evictions_total",
    type: "counter",
    help: "Texts or beginnings of texts that gave way to others.",
    value: ({ evictions }) => evictions,
  },
  {
    name: "mismatches_total",
    type: "counter",
    help: "Hits that the self-check found wrong.",
    value: ({ mismatches }) => mismatches,
  },
  {
    name: "entries",
    type: "gauge",
    help: "Texts or beginnings of texts that are known.",
    value: ({ entries }) => entries,
  },
  {
    name: "bytes",
    type: "gauge",
    help: "Memory in use; texts and ids, which both levels share, count for the first.",
    value: ({ bytes }) => bytes,
  },
  { name: "enabled", type: "gauge", help: "1 while the level is on.", value: ({ enabled }) => Number(enabled) },
];

/** The state of the models' tokenizer caches. */
export function tokenizerCacheMetrics(models: readonly ModelEntry[]): readonly MetricFamily[] {
  const stats = models.flatMap(({ id, tokenizerCache }) =>
    tokenizerCache === undefined ? [] : cacheStats(tokenizerCache).map((level) => ({ model: id, level })),
  );
  return CACHE_METRICS.map(({ name, type, help, value }) => ({
    name: `collie_tokenizer_cache_${name}`,
    type,
    help,
    samples: stats.map(({ model, level }) => ({ labels: { model, level: level.level }, value: value(level) })),
  }));
}

const BREAKER = { closed: 0, open: 1, "half-open": 2 } as const;

/** What an engine says of itself, by names of metrics. */
export const ENGINE_METRICS: readonly (readonly [name: MetricName, value: (rank: RankLoad) => number | undefined])[] = [
  ["smg_engine_running_requests", ({ running }) => running],
  ["smg_engine_waiting_requests", ({ waiting }) => waiting],
  ["smg_engine_token_usage", ({ tokenUsage }) => tokenUsage],
  ["smg_engine_gen_throughput", ({ throughput }) => throughput],
  ["smg_engine_cache_hit_rate", ({ cacheHitRate }) => cacheHitRate],
];

/** The fleet as it is now: gauges of workers. `tellsLoads`: those of their engines, too. */
export function fleetGauges(
  workers: Iterable<WorkerRecord>,
  board: Pick<FleetBoard, "running" | "queuedTokens" | "bookings" | "breaker">,
  tellsLoads: boolean,
): Counted {
  const all = [...workers];
  const each = (value: (worker: WorkerRecord) => number): Series[] =>
    all.map((worker) => ({ labels: [worker.spec.url], value: value(worker) }));
  const sum = (of: (slot: number) => number): Series[] =>
    each((worker) => slotsOf(worker).reduce((total, slot) => total + of(slot), 0));
  return {
    smg_worker_pool_size: poolSizes(all),
    smg_worker_requests_active: sum((slot) => board.running(slot)),
    smg_worker_health: each(({ status }) => Number(status === "ready")),
    smg_worker_cb_state: each((worker) =>
      Math.max(...slotsOf(worker).map((slot) => BREAKER[board.breaker.state(slot)])),
    ),
    collie_worker_queued_tokens: sum((slot) => board.queuedTokens(slot)),
    collie_board_bookings: [{ labels: [], value: board.bookings() }],
    ...(tellsLoads && Object.fromEntries(ENGINE_METRICS.map(([name, value]) => [name, engineSeries(all, value)]))),
  };
}

/** The prefix index as it is now. */
export function indexGauges({ blocks, bytes, evicted, dropped }: PrefixStats): Counted {
  const one = (value: number): Series[] => [{ labels: [], value }];
  return {
    collie_prefix_index_blocks: one(blocks),
    collie_prefix_index_bytes: one(bytes),
    collie_prefix_index_evictions_total: one(evicted),
    collie_prefix_index_dropped_total: one(dropped),
  };
}

function poolSizes(workers: readonly WorkerRecord[]): Series[] {
  const sizes = new Map<string, { readonly labels: readonly string[]; value: number }>();
  for (const { found } of workers) {
    for (const model of found?.models ?? []) {
      const labels = [found?.facts?.role ?? "regular", found?.kind ?? "grpc", model];
      const its = sizes.get(labels.join("\n")) ?? { labels, value: 0 };
      its.value++;
      sizes.set(labels.join("\n"), its);
    }
  }
  return [...sizes.values()];
}

function engineSeries(workers: readonly WorkerRecord[], value: (rank: RankLoad) => number | undefined): Series[] {
  return workers.flatMap(({ spec, found, loads = [] }) =>
    loads.flatMap((rank) => {
      const told = value(rank);
      return told === undefined
        ? []
        : [{ labels: [spec.url, found?.models?.[0] ?? "", String(rank.rank)], value: told }];
    }),
  );
}
