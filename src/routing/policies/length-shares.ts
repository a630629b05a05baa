/** Which share of all prompts' tokens is in prompts that are shorter than one. */

/** Lengths are counted by quarters of powers of two. */
const STEPS = 4;
/** Before anything was learnt: evenly up to this length, SMG's first. */
const FIRST_MAXIMUM = 4096;
/** Prompts that are worth learning from. */
const FEWEST = 32;

const lengthAt = (bucket: number): number => 2 ** (bucket / STEPS);

/** Learns by and by: what came before the last interval counts half, and half again. */
export class LengthShares {
  private learntAt = Number.NEGATIVE_INFINITY;
  private seen: Uint32Array | undefined;
  private counts: Float64Array | undefined;
  /** Share of the tokens in prompts of shorter buckets. */
  private shares: Float64Array | undefined;

  isDue(now: number, intervalMs: number): boolean {
    return now - this.learntAt >= intervalMs;
  }

  /** `lengths` are counts since the start, by buckets. */
  learn(lengths: Uint32Array, now: number): void {
    this.learntAt = now;
    const { seen } = this;
    let fresh = 0;
    for (let i = 0; i < lengths.length; i++) fresh += (lengths[i]! - (seen?.[i] ?? 0)) >>> 0;
    if (fresh < FEWEST) return;
    const counts = (this.counts ??= new Float64Array(lengths.length));
    for (let i = 0; i < lengths.length; i++) counts[i] = counts[i]! / 2 + ((lengths[i]! - (seen?.[i] ?? 0)) >>> 0);
    this.seen = lengths.slice();
    this.shares = sharesOf(counts);
  }

  /** 0 to 1; within a bucket in proportion to the length. */
  below(tokens: number): number {
    const { shares } = this;
    if (shares === undefined) return Math.min(1, Math.max(0, tokens) / FIRST_MAXIMUM);
    const at = Math.log2(Math.max(1, tokens)) * STEPS;
    const bucket = Math.min(shares.length - 2, Math.floor(at));
    const from = lengthAt(bucket);
    const within = Math.min(1, (tokens - from) / (lengthAt(bucket + 1) - from));
    return shares[bucket]! + (shares[bucket + 1]! - shares[bucket]!) * within;
  }

  /** The part of all that is in prompts of about this length; everything while nothing is learnt. */
  alike(tokens: number): readonly [from: number, to: number] {
    const { shares } = this;
    if (shares === undefined) return [0, 1];
    const bucket = Math.max(0, Math.min(shares.length - 2, Math.floor(Math.log2(Math.max(1, tokens)) * STEPS)));
    return [shares[bucket]!, shares[bucket + 1]!];
  }
}

function sharesOf(counts: Float64Array): Float64Array {
  const shares = new Float64Array(counts.length + 1);
  let sum = 0;
  for (let i = 0; i < counts.length; i++) shares[i + 1] = sum += counts[i]! * lengthAt(i + 0.5);
  for (let i = 0; i < shares.length; i++) shares[i]! /= sum;
  return shares;
}
