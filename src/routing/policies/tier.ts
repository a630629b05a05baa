/** Workers' priorities: larger ones are used first, and others when those are saturated. */
import type { Candidate, CandidateLoad } from "../policy.ts";
import { SATURATED_KV } from "../score.ts";

const isSaturated = (candidate: Candidate, load: CandidateLoad): boolean =>
  (candidate.maxRunning > 0 && load.running(candidate) >= candidate.maxRunning) ||
  (load.kvUsage(candidate) ?? 0) >= SATURATED_KV;

export class Tier {
  private readonly used: Candidate[] = [];

  /**
   * Those of the largest priority, and of the next ones as long as everyone before is saturated. The array is reused, or the one that
   * was given where nobody is left out.
   */
  of<C extends Candidate>(candidates: readonly C[], load: CandidateLoad): readonly C[] {
    const lowest = this.lowest(candidates, load);
    if (lowest === undefined) return candidates;
    const used = this.used as C[];
    used.length = 0;
    for (const candidate of candidates) if (candidate.priority >= lowest) used.push(candidate);
    return used;
  }

  /** The lowest priority that is used now; undefined: all of them. */
  private lowest(candidates: readonly Candidate[], load: CandidateLoad): number | undefined {
    let level = Number.NEGATIVE_INFINITY;
    let least = Number.POSITIVE_INFINITY;
    for (const { priority } of candidates) {
      if (priority > level) level = priority;
      if (priority < least) least = priority;
    }
    while (level > least) {
      let next = least;
      for (const candidate of candidates) {
        if (candidate.priority === level && !isSaturated(candidate, load)) return level;
        if (candidate.priority < level && candidate.priority > next) next = candidate.priority;
      }
      level = next;
    }
    return undefined;
  }
}
