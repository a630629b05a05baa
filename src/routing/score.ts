/**
 * What a request costs at a worker, in tokens of prefill: the unit in which waiting, recomputing and sharing a batch can be compared.
 * The constants were tuned with `bench/routing/model.ts`; `bench/results` holds what else was tried.
 */

/**
 * A token that must be computed again weighs more than one that waits: it delays this request, and keeps the worker from those that
 * come after. Above 1, a burst with one new prefix goes to few workers, as waiting for the prefix is cheaper than computing it twice.
 */
export const RECOMPUTE = 2;

/** There are more of those that come after when there are queues: as much again for each prompt's length that waits at every worker, up to this. */
export const RECOMPUTE_CROWDED = 3;

/**
 * What a running request costs the others beside it, and they it: part of every step, for the length of an answer. Some 64 steps of
 * 0.35 ms both ways, at 8 tokens of prefill a millisecond.
 */
export const DECODE_TOKENS = 384;

/**
 * Of the work that a worker was given of late beyond what others were, so large a part counts as if it still waited: a prefix is asked
 * for again where it is, so that workers with much to do now will have much to do. It decides where new prefixes go, and moves no old ones.
 */
export const RECENT_SHARE = 0.05;
/** It is so many tokens at most, more or less than the mean. */
export const RECENT_MOST = 512;
/** Time in which work of the past fades to a third, in milliseconds. */
export const RECENT_MS = 20_000;

/**
 * What a worker that holds a beginning has to do beyond the mean, whoever is sent there for it loses; so many times that is put to the
 * account of the beginning, and when it is as much as computing it once more, a second worker does. A beginning that comes several times
 * within this time, in milliseconds, is meant: others are forgotten before.
 */
export const HOT_WEIGHT = 1.5;
export const HOT_MS = 500;

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

/** What each token weighs that a worker would have to compute again; `meanQueued`: tokens that wait at the workers on average. */
export const recomputeWeight = (tokens: number, meanQueued: number): number =>
  tokens === 0 ? RECOMPUTE : RECOMPUTE + Math.min(RECOMPUTE_CROWDED, meanQueued / tokens);

/** Differences within this are none: of a prompt's length, in blocks of this size. */
export const nearTokens = (tokens: number, blockSize: number): number =>
  Math.max(NEAR_TOKENS, blockSize, NEAR_SHARE * tokens);

/** What work of late beyond the mean stands for. */
export const recentTokens = (excess: number): number =>
  Math.max(-RECENT_MOST, Math.min(RECENT_MOST, RECENT_SHARE * excess));
