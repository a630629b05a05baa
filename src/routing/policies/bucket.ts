/** `bucket`: prompts of like lengths go to one worker, so that short ones do not wait for long ones. */
import type { RouteAsk } from "../ask.ts";
import type { Candidate, Choice, PolicyContext } from "../policy.ts";
import { BasePolicy, chosen } from "./base.ts";
import { LengthShares } from "./length-shares.ts";
import { Loads } from "./loads.ts";
import { scopeOf } from "./scope.ts";
import { weightOf } from "./weight.ts";

/**
 * The workers, in their order, have stretches of lengths that make equal parts of the prompts' tokens (by `cost`, not equal ones), as
 * learnt from all threads' prompts at the settings' interval. Out of balance by requests, the one with the fewest tokens that wait is
 * chosen, as SMG does.
 */
export class BucketPolicy extends BasePolicy {
  readonly name = "bucket";
  private readonly loads = new Loads();
  private readonly shares = new Map<string, LengthShares>();

  protected among<C extends Candidate>(
    used: readonly C[],
    _candidates: readonly C[],
    ask: RouteAsk,
    context: PolicyContext,
    explains: boolean,
  ): Choice<C> {
    const scope = scopeOf(context);
    const { sticky, settings, now } = context;
    const tokens = ask.tokens > 0 ? ask.tokens : settings.meanPrefillTokens;
    const shares = this.sharesOf(scope, explains);
    if (!explains) {
      sticky.countLength(scope, tokens);
      if (shares.isDue(now, settings.bucketAdjustMs)) shares.learn(sticky.lengths(scope), now);
    }
    this.loads.read(used, context.load);
    if (!this.loads.isBalanced(settings)) return chosen(this.shortest(used, context), "balance");

    let sum = 0;
    for (const candidate of used) sum += 1 / weightOf(candidate);
    let left = shares.below(tokens) * sum;
    for (const candidate of used) if ((left -= 1 / weightOf(candidate)) < 0) return chosen(candidate, "key");
    return chosen(used[used.length - 1]!, "key");
  }

  /** An explained choice leaves none behind. */
  private sharesOf(scope: string, explains: boolean): LengthShares {
    let shares = this.shares.get(scope);
    if (shares === undefined) {
      shares = new LengthShares();
      if (!explains) this.shares.set(scope, shares);
    }
    return shares;
  }

  private shortest<C extends Candidate>(used: readonly C[], { load }: PolicyContext): C {
    const weights = this.weights.begin(used.length);
    for (let i = 0; i < used.length; i++) weights[i] = (this.loads.queued[i]! + 1) * weightOf(used[i]!);
    return this.weights.least(used, load, this.turn);
  }
}
