/** A measured moment: seconds since the start, and bytes. */
export interface MemorySample {
  readonly atSecs: number;
  readonly bytes: number;
}

/** Slope of the line through the samples by least squares, in megabytes a minute; those of the first `warmup` of the time don't count. */
export function memorySlope(samples: readonly MemorySample[], warmup: number): number {
  const last = samples.at(-1)?.atSecs ?? 0;
  const counted = samples.filter(({ atSecs }) => atSecs >= last * warmup);
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const x = mean(counted.map(({ atSecs }) => atSecs));
  const y = mean(counted.map(({ bytes }) => bytes));
  let over = 0;
  let under = 0;
  for (const { atSecs, bytes } of counted) {
    over += (atSecs - x) * (bytes - y);
    under += (atSecs - x) ** 2;
  }
  return under === 0 ? 0 : (over / under) * (60 / 1e6);
}
