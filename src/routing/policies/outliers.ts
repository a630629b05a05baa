/** Workers that are passed over whatever their caches hold, since the fleet is out of balance. */
import type { Candidate, PolicyContext } from "../policy.ts";
import type { PrefixLookup } from "./lookup.ts";

/** One that is used is enough for others to be passed over. Reused. */
export class Outliers {
  private counts = new Int32Array(64);
  private passed = new Uint8Array(64);

  /** Requests of the candidate of this index, as they were at the last `find`. */
  running(index: number): number {
    return this.counts[index]!;
  }

  has(index: number): boolean {
    return this.passed[index] === 1;
  }

  /**
   * Out of balance by requests, those nearer to the most loaded are passed over; those nearer to the least are still chosen among by what
   * they hold. By KV caches it is those above the thresholds, for the lower one of them only where they hold nothing of the prompt.
   * Returns whether nobody is passed over.
   */
  find(candidates: readonly Candidate[], lookup: PrefixLookup, { load, settings }: PolicyContext): boolean {
    const count = candidates.length;
    if (count > this.counts.length) {
      this.counts = new Int32Array(2 * count);
      this.passed = new Uint8Array(2 * count);
    }
    let least = Number.POSITIVE_INFINITY;
    let most = 0;
    for (let i = 0; i < count; i++) {
      const running = load.running(candidates[i]!);
      this.counts[i] = running;
      if (running < least) least = running;
      if (running > most) most = running;
    }
    this.passed.fill(0, 0, count);
    let left = count;
    if (most - least > settings.balanceAbsThreshold && most > settings.balanceRelThreshold * least) {
      const middle = (least + most) / 2;
      for (let i = 0; i < count; i++) if (this.counts[i]! > middle) left -= this.pass(i);
    }
    const { overloadTokenUsageThreshold: overload, balanceTokenUsageThreshold: balance } = settings;
    if (overload < 1 || balance < 1) left = this.passFull(candidates, lookup, load, overload, balance, left);
    return left === count;
  }

  /** Nobody is passed over for a full cache where all that are left have one. */
  private passFull(
    candidates: readonly Candidate[],
    lookup: PrefixLookup,
    load: PolicyContext["load"],
    overload: number,
    balance: number,
    left: number,
  ): number {
    const isFull = (i: number): boolean => {
      const used = load.kvUsage(candidates[i]!) ?? 0;
      return used > overload || (used > balance && lookup.matched(i) === 0);
    };
    let full = 0;
    for (let i = 0; i < candidates.length; i++) if (!this.has(i) && isFull(i)) full++;
    if (full === left) return left;
    for (let i = 0; i < candidates.length; i++) if (!this.has(i) && isFull(i)) this.pass(i);
    return left - full;
  }

  private pass(index: number): 1 {
    this.passed[index] = 1;
    return 1;
  }
}
