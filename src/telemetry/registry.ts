/** What one thread counts. Counters are found once and kept by whoever counts: counting is an addition. */
import { METRICS, type MetricName, type MetricSpec } from "./metric-table.ts";
import type { MetricFamily, Sample } from "./metrics.ts";

export class Counter {
  value = 0;

  add(by = 1): void {
    this.value += by;
  }
}

export class Histogram {
  /** Of each bucket alone, the last one without an upper bound. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(private readonly bounds: readonly number[]) {
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
    this.counts[bucket]! += 1;
    this.sum += value;
  }
}

/** What one set of labels has come to. Plain: it crosses threads. `counts` are absent for counters. */
export interface Series {
  readonly labels: readonly string[];
  readonly value: number;
  readonly counts?: readonly number[];
}

/** What a thread has counted, by names of metrics. */
export type Counted = Readonly<Record<string, readonly Series[]>>;

/** Parts the values of labels: no value has it. */
const BETWEEN = "\u0000";

export class MetricRegistry {
  private readonly counters = new Map<string, Map<string, Counter>>();
  private readonly histograms = new Map<string, Map<string, Histogram>>();

  /** The counter of some labels, in the order of the table. */
  counter(name: MetricName, ...labels: string[]): Counter {
    return found(this.counters, name, labels, () => new Counter());
  }

  histogram(name: MetricName, ...labels: string[]): Histogram {
    return found(this.histograms, name, labels, () => new Histogram((METRICS[name] as MetricSpec).buckets ?? []));
  }

  counted(): Counted {
    const all: Record<string, Series[]> = {};
    for (const [name, series] of this.counters)
      all[name] = [...series].map(([key, { value }]) => ({ labels: key.split(BETWEEN), value }));
    for (const [name, series] of this.histograms)
      all[name] = [...series].map(([key, { sum, counts }]) => ({
        labels: key.split(BETWEEN),
        value: sum,
        counts: [...counts],
      }));
    return all;
  }
}

function found<T>(all: Map<string, Map<string, T>>, name: string, labels: readonly string[], make: () => T): T {
  let series = all.get(name);
  if (series === undefined) {
    series = new Map();
    all.set(name, series);
  }
  const key = labels.join(BETWEEN);
  let one = series.get(key);
  if (one === undefined) {
    one = make();
    series.set(key, one);
  }
  return one;
}

/** The sum of what several threads have counted. */
export function summed(all: readonly Counted[]): Counted {
  const sums = new Map<string, Map<string, Series>>();
  for (const counted of all) {
    for (const [name, series] of Object.entries(counted)) {
      const byLabels = sums.get(name) ?? new Map<string, Series>();
      sums.set(name, byLabels);
      for (const one of series) {
        const key = one.labels.join(BETWEEN);
        const before = byLabels.get(key);
        byLabels.set(key, before === undefined ? one : plus(before, one));
      }
    }
  }
  return Object.fromEntries([...sums].map(([name, series]) => [name, [...series.values()]]));
}

function plus(one: Series, other: Series): Series {
  const { labels, value, counts } = one;
  return {
    labels,
    value: value + other.value,
    ...(counts && { counts: counts.map((count, i) => count + (other.counts?.[i] ?? 0)) }),
  };
}

/** What was counted, as it is shown, in the order of the table. */
export function familiesOf(counted: Counted): readonly MetricFamily[] {
  return Object.entries(METRICS as Readonly<Record<string, MetricSpec>>).flatMap(([name, spec]) => {
    const series = counted[name];
    if (series === undefined) return [];
    return { name, type: spec.type, help: spec.help, samples: series.flatMap((one) => samplesOf(one, spec)) };
  });
}

function samplesOf({ labels: values, value, counts }: Series, { labels, buckets = [] }: MetricSpec): Sample[] {
  const named = Object.fromEntries(labels.map((label, i) => [label, values[i] ?? ""]));
  if (counts === undefined) return [{ labels: named, value }];
  let below = 0;
  const rows = counts.map((count, i): Sample => {
    below += count;
    return { suffix: "_bucket", labels: { ...named, le: String(buckets[i] ?? "+Inf") }, value: below };
  });
  return [...rows, { suffix: "_sum", labels: named, value }, { suffix: "_count", labels: named, value: below }];
}
