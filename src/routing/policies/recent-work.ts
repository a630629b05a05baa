/** What workers were given of late. */
import type { Candidate } from "../policy.ts";
import { RECENT_MS } from "../score.ts";

/** Values are kept multiplied by a factor that grows with time, so that none but the newest is touched; when it is this large they are brought down. */
const LARGEST_FACTOR = 1e9;
/** What has faded to less is forgotten: the worker may have left. */
const LEAST_TOKENS = 1;

/**
 * Tokens by workers' slots, fading over time. Each thread counts what it gave: a sample, which decides little and is not worth shared
 * memory.
 */
export class RecentWork {
  private readonly values = new Map<number, number>();
  private shares = new Float64Array(64);
  private startedAt = 0;
  private factor = 1;

  /** By how much each of the candidates was given more than they were on average, by their indices; reused. `now`: milliseconds since 1970. */
  excess(candidates: readonly Candidate[], now: number): Float64Array {
    this.moveTo(now);
    const count = candidates.length;
    if (count > this.shares.length) this.shares = new Float64Array(2 * count);
    const { shares, values } = this;
    const faded = 1 / this.factor;
    let sum = 0;
    for (let i = 0; i < count; i++) sum += shares[i] = (values.get(candidates[i]!.slot) ?? 0) * faded;
    const mean = sum / count;
    for (let i = 0; i < count; i++) shares[i]! -= mean;
    return shares;
  }

  /** By how much one of the candidates of the last `excess` was given more than another. */
  more(one: number, other: number): number {
    return this.shares[one]! - this.shares[other]!;
  }

  /** At the time of the last `excess`. */
  add({ slot }: Candidate, tokens: number): void {
    this.values.set(slot, (this.values.get(slot) ?? 0) + tokens * this.factor);
  }

  private moveTo(now: number): void {
    this.factor = Math.exp((now - this.startedAt) / RECENT_MS);
    if (this.factor <= LARGEST_FACTOR) return;
    for (const [slot, value] of this.values) {
      const left = value / this.factor;
      if (left < LEAST_TOKENS) this.values.delete(slot);
      else this.values.set(slot, left);
    }
    this.startedAt = now;
    this.factor = 1;
  }
}
