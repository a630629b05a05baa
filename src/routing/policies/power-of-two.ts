/** `power_of_two`: the less loaded one of two that are drawn. */
import type { RouteAsk } from "../ask.ts";
import type { Candidate, CandidateLoad, Choice, PolicyContext } from "../policy.ts";
import { BasePolicy, chosen } from "./base.ts";
import { weightOf } from "./weight.ts";

/**
 * By KV use where both tell, as SMG does it, but by tenths: what is told is some time old, and a little more says less than the requests
 * that are counted here. By those where it is the same, or somebody does not tell. Load counts times `cost`.
 */
export class PowerOfTwoPolicy extends BasePolicy {
  readonly name = "power_of_two";

  protected among<C extends Candidate>(
    used: readonly C[],
    _candidates: readonly C[],
    _ask: RouteAsk,
    context: PolicyContext,
  ): Choice<C> {
    const count = used.length;
    const first = Math.floor(context.random() * count);
    const one = used[first]!;
    if (count === 1) return chosen(one, "turn");
    const second = Math.floor(context.random() * (count - 1));
    const other = used[second < first ? second : second + 1]!;
    return chosen(isLess(other, one, context.load) ? other : one, "turn");
  }
}

function isLess(one: Candidate, other: Candidate, load: CandidateLoad): boolean {
  const its = load.kvUsage(one);
  const others = load.kvUsage(other);
  if (its !== undefined && others !== undefined) {
    const more = Math.floor(its * 10) * weightOf(one) - Math.floor(others * 10) * weightOf(other);
    if (more !== 0) return more < 0;
  }
  return (load.running(one) + 1) * weightOf(one) < (load.running(other) + 1) * weightOf(other);
}
