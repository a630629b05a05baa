/**
 * What a request costs at a worker, in tokens of prefill: the unit in which waiting, recomputing and sharing a batch can be compared.
 * The constants were tuned with `bench/routing/model.ts`; the table of what else was tried is in `docs/routing.md`.
 */

/**
 * A token that must be computed again weighs more than one that waits: it delays this request, and keeps the worker from those that
 * come after. Above 1, a burst with one new prefix goes to few workers, as waiting for the prefix is cheaper than computing it twice.
 */
export const RECOMPUTE = 1.5;

/** A running request takes part of every step of those beside it for the length of an answer: so many tokens of prefill. */
export const DECODE_TOKENS = 64;

/** A request that finds no free place in the batch waits for the end of another: a second or so, at some thousand tokens a second. */
export const PLACE_TOKENS = 8192;

/** A KV cache that is all in use costs as if this share were: k / (1 - k) has no end. */
export const FULLEST = 0.98;

/** A worker of a larger priority is saturated with so much of its KV cache in use, where it does not tell how many requests it runs. */
export const SATURATED_KV = 0.95;

/** Costs that differ by no more tokens than this are as good as equal, as loads are older than that: at least, and as a share of the prompt. */
export const NEAR_TOKENS = 64;
export const NEAR_SHARE = 0.02;

/**
 * Where nothing is known of what caches hold, since a prompt came without tokens, but it is of a session: the worker of the session is
 * worth so large a share of the prompt. Its earlier turns are there, and they are most of it.
 */
export const SESSION_SHARE = 0.5;

/** The pull of a filling KV cache: 0 when it is empty, 1 at a half, 49 at the most. */
export const pressure = (kvUsage: number | undefined): number => {
  if (kvUsage === undefined || kvUsage <= 0) return 0;
  const used = kvUsage < FULLEST ? kvUsage : FULLEST;
  return used / (1 - used);
};

/** Tokens that running requests stand for, and this one beside them. `maxRunning`: 0 = unknown. */
export const batchTokens = (running: number, maxRunning: number): number => {
  const shared = DECODE_TOKENS * (running + 1);
  if (maxRunning === 0 || running < maxRunning) return shared;
  return shared + (PLACE_TOKENS * (running + 1 - maxRunning)) / maxRunning;
};

/** Differences within this are none: of a prompt's length, in blocks of this size. */
export const nearTokens = (tokens: number, blockSize: number): number =>
  Math.max(NEAR_TOKENS, blockSize, NEAR_SHARE * tokens);
