// Writes the table of docs/metrics.md from the table of metrics:   node scripts/bun.mjs run scripts/metrics-docs.ts
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { METRICS, type MetricSpec } from "../src/telemetry/metric-table.ts";

/** The page that holds the table. */
export const metricsPage = join(import.meta.dir, "..", "docs", "metrics.md");

const LETTER = { counter: "c", gauge: "g", histogram: "h" } as const;

/** The page with its table made new, between `<!-- metrics -->` and `<!-- end -->`. */
export function withMetrics(page: string): string {
  const rows = Object.entries(METRICS as Readonly<Record<string, MetricSpec>>).map(
    ([name, { type, labels, help }]) => `| ${LETTER[type]} | \`${name}\` | ${labels.join(", ")} | ${help} |`,
  );
  const table = ["| | Metric | Labels | Meaning |", "|---|---|---|---|", ...rows].join("\n");
  return page.replace(
    /(<!-- metrics -->\n)[\s\S]*?(<!-- end -->)/,
    (_, begin: string, end: string) => `${begin}${table}\n${end}`,
  );
}

if (import.meta.main) writeFileSync(metricsPage, withMetrics(readFileSync(metricsPage, "utf8")));
