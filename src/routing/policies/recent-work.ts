/** What workers were given of late. */
import type { Candidate } from "../policy.ts";
import { RECENT_MS } from "../score.ts";

/** Values are kept multiplied by a factor that grows with time, so that none but the newest is touched; when it is this large they are brought down. */
const LARGEST_FACTOR = 1e9;
/** What has faded to less is forgotten: it would still decide between two that are alike. */
const LEAST_TOKENS = 1;
/** Slots of workers that are there together differ in these bits: a row of the fleet board is one worker's at a time. */
const ROWS = 1024;

/**
 * Tokens by workers' slots, fading over time. Each thread counts what it gave: a sample, which decides little and is not worth shared
 * memory.
 */
export class RecentWork {
  private readonly values = new Float64Array(ROWS);
  /** Whose they are. */
  private readonly slots = new Int32Array(ROWS).fill(-1);
  private shares = new Float64Array(64);
  /** Of the last `given`. */
  mean = 0;
  private startedAt = 0;
  private factor = 1;

  /** What each of the candidates was given, by their indices, and `mean` on average; reused. `now`: milliseconds since 1970. */
  given(candidates: readonly Candidate[], now: number): Float64Array {
    this.moveTo(now);
    const count = candidates.length;
    if (count > this.shares.length) this.shares = new Float64Array(2 * count);
    const { shares, slots, values } = this;
    const faded = 1 / this.factor;
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const { slot } = candidates[i]!;
      const row = slot & (ROWS - 1);
      sum += shares[i] = slots[row] === slot ? values[row]! * faded : 0;
    }
    this.mean = sum / count;
    return shares;
  }

  /** By how much one of the candidates of the last `given` was given more than another. */
  more(one: number, other: number): number {
    return this.shares[one]! - this.shares[other]!;
  }

  /** At the time of the last `given`. */
  add({ slot }: Candidate, tokens: number): void {
    const row = slot & (ROWS - 1);
    if (this.slots[row] !== slot) {
      this.slots[row] = slot;
      this.values[row] = 0;
    }
    this.values[row]! += tokens * this.factor;
  }

  private moveTo(now: number): void {
    this.factor = Math.exp((now - this.startedAt) / RECENT_MS);
    if (this.factor <= LARGEST_FACTOR) return;
    for (let row = 0; row < ROWS; row++) {
      const left = this.values[row]! / this.factor;
      this.values[row] = left < LEAST_TOKENS ? 0 : left;
    }
    this.startedAt = now;
    this.factor = 1;
  }
}
