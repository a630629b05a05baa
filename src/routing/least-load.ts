/** The candidate with the least running requests; among equals the one after `turn`, so that an idle fleet is used evenly. */
export function leastLoad<T>(candidates: readonly T[], running: (candidate: T) => number, turn: number): T | undefined {
  let best: T | undefined;
  let load = Number.POSITIVE_INFINITY;
  for (let i = 0; i < candidates.length; i++) {
    const candidate = candidates[(i + turn) % candidates.length]!;
    const its = running(candidate);
    if (its < load) {
      best = candidate;
      load = its;
    }
  }
  return best;
}
