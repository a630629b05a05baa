/** Seeded random numbers (mulberry32): a failing case can be run again. */
export function random(seed: number): { below(n: number): number; pick<T>(list: readonly T[]): T } {
  let state = seed >>> 0;
  const below = (n: number) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) % n;
  };
  return { below, pick: (list) => list[below(list.length)]! };
}
