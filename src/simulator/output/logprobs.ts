/** Logprobs of one token: its own, and rows of the best tokens with the token itself first. */
export interface TokenRow {
  readonly logprob: number;
  readonly topIds: readonly number[];
  readonly topLogprobs: readonly number[];
}

/** Share of tokens that are not the likeliest of their position when sampled at a temperature. */
const SURPRISE_SHARE = 0.2;

function mix(a: number, b: number): number {
  let h = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b + 0x7f4a7c15, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
  return (h ^ (h >>> 12)) >>> 0;
}

/**
 * Made-up but repeatable logprobs for the token `id` at `position`: `count` rows in all, the token first whatever its rank, then
 * the best others from high to low. With `greedy` the token is always the likeliest.
 */
export function logprobRow(id: number, position: number, count: number, greedy: boolean, vocabSize: number): TokenRow {
  const noise = mix(id, position);
  const surprise = !greedy && (noise & 0xffff) / 0x10000 < SURPRISE_SHARE;
  const logprob = -(0.01 + ((noise >>> 8) % 1000) / 2000 + (surprise ? 2.5 : 0));
  const topIds: number[] = [];
  const topLogprobs: number[] = [];
  if (count > 0) {
    topIds.push(id);
    topLogprobs.push(logprob);
  }
  let value = surprise ? -0.2 : logprob - 1.2;
  let other = noise;
  while (topIds.length < count) {
    other = mix(other, topIds.length);
    const candidate = other % vocabSize;
    if (topIds.includes(candidate)) continue;
    topIds.push(candidate);
    topLogprobs.push(value);
    value -= 0.4 + (other % 97) / 100;
  }
  return { logprob, topIds, topLogprobs };
}

/** A made-up but repeatable logprob for any id at a position. */
export function tokenLogprob(id: number, position: number): number {
  return -(1 + (mix(id, position) % 8000) / 1000);
}
