/** Percentiles over all samples (no sketches), with linear interpolation. */
export interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** Quantile `q` (0 to 1) of sorted samples; NaN when there are none. */
export function quantile(sorted: ArrayLike<number>, q: number): number {
  if (sorted.length === 0) return Number.NaN;
  const place = q * (sorted.length - 1);
  const low = sorted[Math.floor(place)]!;
  return low + (sorted[Math.ceil(place)]! - low) * (place - Math.floor(place));
}

export function percentiles(samples: readonly number[]): Percentiles | undefined {
  if (samples.length === 0) return undefined;
  const sorted = Float64Array.from(samples).sort();
  return {
    p50: quantile(sorted, 0.5),
    p90: quantile(sorted, 0.9),
    p99: quantile(sorted, 0.99),
    p999: quantile(sorted, 0.999),
    max: sorted[sorted.length - 1]!,
  };
}

/** Median, least and greatest of some numbers; NaN for none. */
export function spread(values: readonly number[]): {
  readonly median: number;
  readonly min: number;
  readonly max: number;
} {
  const sorted = Float64Array.from(values).sort();
  return { median: quantile(sorted, 0.5), min: quantile(sorted, 0), max: quantile(sorted, 1) };
}
