/** The policies that look at nothing: `round_robin`, `random`, `passthrough`. They go by priority, and `random` by cost. */
import type { RouteAsk } from "../ask.ts";
import type { Candidate, Choice, PolicyContext } from "../policy.ts";
import { BasePolicy, chosen } from "./base.ts";
import { scopeOf } from "./scope.ts";
import { anyone } from "./weight.ts";

/** One after the other; all threads count together. */
export class RoundRobinPolicy extends BasePolicy {
  readonly name = "round_robin";

  protected among<C extends Candidate>(
    used: readonly C[],
    _candidates: readonly C[],
    _ask: RouteAsk,
    context: PolicyContext,
    explains: boolean,
  ): Choice<C> {
    const scope = scopeOf(context);
    const turn = explains ? context.sticky.upcoming(scope) : context.sticky.next(scope);
    return chosen(used[(turn >>> 0) % used.length]!, "turn");
  }
}

export class RandomPolicy extends BasePolicy {
  readonly name = "random";

  protected among<C extends Candidate>(
    used: readonly C[],
    _candidates: readonly C[],
    _ask: RouteAsk,
    context: PolicyContext,
  ): Choice<C> {
    return chosen(anyone(used, context), "turn");
  }
}

/** The first that can take it; others are there in case it cannot. */
export class PassthroughPolicy extends BasePolicy {
  readonly name = "passthrough";

  protected among<C extends Candidate>(used: readonly C[]): Choice<C> {
    return chosen(used[0]!, "turn");
  }
}
