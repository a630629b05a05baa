/** Workers that are passed over whatever their caches hold, since the fleet is out of balance. */
import type { Candidate, PolicyContext } from "../policy.ts";
import type { Loads } from "./loads.ts";
import type { PrefixLookup } from "./lookup.ts";

/** Reused. */
export class Outliers {
  private passed = new Uint8Array(64);

  has(index: number): boolean {
    return this.passed[index] === 1;
  }

  /**
   * Out of balance by requests, those nearer to the most loaded are passed over; those nearer to the least are still chosen among by what
   * they hold. By KV caches it is those above the thresholds, above the balance's only where they hold nothing of the prompt. Returns
   * whether nobody is passed over.
   */
  find(
    candidates: readonly Candidate[],
    loads: Loads,
    lookup: PrefixLookup,
    { load, settings }: PolicyContext,
  ): boolean {
    const count = candidates.length;
    if (count > this.passed.length) this.passed = new Uint8Array(2 * count);
    this.passed.fill(0, 0, count);
    let left = count;
    if (!loads.isBalanced(settings)) {
      for (let i = 0; i < count; i++) {
        if (!loads.isHigh(i)) continue;
        this.passed[i] = 1;
        left--;
      }
    }
    const { overloadTokenUsageThreshold: overload, balanceTokenUsageThreshold: balance } = settings;
    if (overload < 1 || balance < 1) left -= this.passFull(candidates, lookup, load, overload, balance, left);
    return left === count;
  }

  /** How many of those that are `left` have a full cache; nobody is passed over for that where all of them do. */
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
    if (full === left) return 0;
    for (let i = 0; i < candidates.length; i++) if (!this.has(i) && isFull(i)) this.passed[i] = 1;
    return full;
  }
}
