import type { MetricFamily } from "../telemetry/metrics.ts";
import { cacheStats, type LevelStats } from "../tokenizer/cache/stats.ts";
import type { ModelEntry } from "./snapshot.ts";

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
