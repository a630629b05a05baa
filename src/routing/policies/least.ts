/** The least of what a policy weighs. */
import type { Candidate, CandidateLoad } from "../policy.ts";

/** Weights of the candidates of one choice. Reused; no closure and no array is made per request. */
export class Weights {
  private values = new Float64Array(64);

  /** Weights for so many, to be filled from the start. */
  begin(count: number): Float64Array {
    if (count > this.values.length) this.values = new Float64Array(2 * count);
    return this.values;
  }

  at(index: number): number {
    return this.values[index]!;
  }

  /** Who weighs least; among equals the one used least recently, and then the first from `turn` on. */
  least<C extends Candidate>(candidates: readonly C[], load: CandidateLoad, turn: number): C {
    const { values } = this;
    const count = candidates.length;
    let at = turn % count;
    let best = candidates[at]!;
    let weight = values[at]!;
    let usedAt = -1;
    for (let left = count - 1; left > 0; left--) {
      if (++at === count) at = 0;
      const its = values[at]!;
      if (its > weight) continue;
      const candidate = candidates[at]!;
      if (its === weight) {
        if (usedAt < 0) usedAt = load.lastUsed(best);
        const used = load.lastUsed(candidate);
        if (used >= usedAt) continue;
        usedAt = used;
      } else usedAt = -1;
      best = candidate;
      weight = its;
    }
    return best;
  }
}
