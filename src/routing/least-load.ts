/** Load of a candidate, asked for only as far as it decides. */
export interface LoadOf<T> {
  /** Requests that it has. */
  running(candidate: T): number;
  /** Tokens of prompts that wait there. */
  queuedTokens(candidate: T): number;
  /** Share of its KV cache in use, in coarse steps: a finer one would send all requests to one worker until the next report. */
  kvTenths(candidate: T): number;
}

/**
 * The candidate with the least running requests, then the least queued tokens, then the emptiest KV cache; among equals the one after
 * `turn`, so that an idle fleet is used evenly.
 */
export function leastLoad<T>(candidates: readonly T[], load: LoadOf<T>, turn: number): T | undefined {
  if (candidates.length < 2) return candidates[0];
  let best: T | undefined;
  let running = Number.POSITIVE_INFINITY;
  let queued: number | undefined;
  for (let i = 0; i < candidates.length; i++) {
    const candidate = candidates[(i + turn) % candidates.length]!;
    const its = load.running(candidate);
    if (its > running) continue;
    if (its === running && best !== undefined) {
      queued ??= load.queuedTokens(best);
      const waits = load.queuedTokens(candidate);
      if (waits > queued || (waits === queued && load.kvTenths(candidate) >= load.kvTenths(best))) continue;
      queued = waits;
    } else queued = undefined;
    best = candidate;
    running = its;
  }
  return best;
}
