/** Seeded randomness: the same seed gives the same prompts and the same arrivals on every machine. */

/** SplitMix32 by its published constants: 32 bits of state, enough for prompts and arrivals. */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** Unsigned 32-bit number. */
  next(): number {
    this.state = (this.state + 0x9e3779b9) >>> 0;
    let z = this.state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  }

  /** Whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor((this.next() / 0x1_0000_0000) * limit);
  }

  /** Uniform in (0, 1]. */
  unit(): number {
    return (this.next() + 1) / 0x1_0000_0000;
  }
}

/** One seed from several numbers; near inputs give far seeds. */
export function mixSeed(...parts: readonly number[]): number {
  let seed = 0;
  for (const part of parts) seed = new Random((seed ^ (part >>> 0)) >>> 0).next();
  return seed;
}

/** Arrival times of a Poisson process, in milliseconds from the start, at `rate` a second. */
export function poissonArrivals(count: number, rate: number, seed: number): Float64Array {
  const random = new Random(mixSeed(seed, 0x706f6973));
  const times = new Float64Array(count);
  let now = 0;
  for (let i = 0; i < count; i++) {
    times[i] = now;
    now += (-Math.log(random.unit()) / rate) * 1000;
  }
  return times;
}
