import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { metricsPage, withMetrics } from "../../../scripts/metrics-docs.ts";
import { METRICS, type MetricSpec } from "../../../src/telemetry/metric-table.ts";
import { metricsText } from "../../../src/telemetry/metrics.ts";
import { familiesOf, MetricRegistry, summed } from "../../../src/telemetry/registry.ts";

test("the table of the page is that of the program (else run scripts/metrics-docs.ts)", () => {
  const page = readFileSync(metricsPage, "utf8");
  expect(page).toBe(withMetrics(page));
  for (const name of Object.keys(METRICS)) expect(page).toContain(`\`${name}\``);
});

test("names say what they are, and labels are those of Prometheus", () => {
  for (const [name, spec] of Object.entries(METRICS as Readonly<Record<string, MetricSpec>>)) {
    expect(name).toMatch(/^(?:smg|collie)_[a-z_]+$/);
    expect([name, name.endsWith("_total")]).toEqual([name, spec.type === "counter"]);
    expect([name, spec.buckets !== undefined]).toEqual([name, spec.type === "histogram"]);
    for (const label of spec.labels) expect(label).toMatch(/^[a-z_]+$/);
    expect(spec.buckets?.toSorted((a, b) => a - b)).toEqual(spec.buckets as number[]);
  }
});

describe("what threads count", () => {
  function thread(retries: number, seconds: readonly number[]): MetricRegistry {
    const registry = new MetricRegistry();
    const counter = registry.counter("smg_worker_retries_total", "regular", "chat");
    for (let i = 0; i < retries; i++) counter.add();
    for (const value of seconds) registry.histogram("smg_worker_retry_backoff_seconds", "1").observe(value);
    return registry;
  }
  const textOf = (...threads: MetricRegistry[]) =>
    metricsText(familiesOf(summed(threads.map((each) => each.counted())))).split("\n");

  test("is added up by labels", () => {
    const one = thread(2, []);
    const other = thread(3, []);
    other.counter("smg_worker_retries_total", "regular", "embeddings").add(4);
    expect(textOf(one, other)).toEqual([
      "# HELP smg_worker_retries_total Requests that were sent to another worker.",
      "# TYPE smg_worker_retries_total counter",
      'smg_worker_retries_total{worker_type="regular",endpoint="chat"} 5',
      'smg_worker_retries_total{worker_type="regular",endpoint="embeddings"} 4',
      "",
    ]);
  });

  test("of a histogram are buckets that hold all below them, a sum and a count", () => {
    const lines = textOf(thread(0, [0.0005, 0.001, 0.04]), thread(0, [0.04, 10_000]));
    const value = (start: string) => lines.find((line) => line.startsWith(start))?.split(" ")[1];
    const bucket = (le: string) => value(`smg_worker_retry_backoff_seconds_bucket{attempt="1",le="${le}"}`);
    expect([bucket("0.001"), bucket("0.025"), bucket("0.05"), bucket("7200"), bucket("+Inf")]).toEqual([
      "2",
      "2",
      "4",
      "4",
      "5",
    ]);
    expect(value("smg_worker_retry_backoff_seconds_count")).toBe("5");
    expect(Number(value("smg_worker_retry_backoff_seconds_sum"))).toBeCloseTo(10_000.0815);
  });

  test("is found again by its labels, whatever is in them", () => {
    const registry = new MetricRegistry();
    const labels = ["a b", 'c"d'];
    expect(registry.counter("collie_fallbacks_total", ...labels)).toBe(
      registry.counter("collie_fallbacks_total", ...labels),
    );
    registry.counter("collie_retry_budget_denied_total").add();
    expect(textOf(registry)).toContain("collie_retry_budget_denied_total 1");
  });
});
