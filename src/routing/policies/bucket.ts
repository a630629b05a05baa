/** `bucket`: prompts of like lengths go to one worker, so that short ones do not wait for long ones. */
import type { RouteAsk } from "../ask.ts";
import type { Candidate, Choice, PolicyContext } from "../policy.ts";
import { batchTokens, DECODE_TOKENS } from "../score.ts";
import { BasePolicy, chosen } from "./base.ts";
import { LengthShares } from "./length-shares.ts";
import { Loads } from "./loads.ts";
import { scopeOf } from "./scope.ts";
import { weightOf } from "./weight.ts";

/** A worker is for a length whose like make so large a part of its stretch, at least. */
const LEAST_ALIKE = 0.1;

/**
 * The workers, in their order, have stretches of lengths that make equal parts of the prompts' tokens (by `cost`, not equal ones), as
 * learnt from all threads' prompts at the settings' interval. Lengths that are about the same may be in the stretches of several: then it
 * is the one with the least to do, so that among prompts of one length it goes by load. Out of balance by requests, the one with the
 * fewest tokens that wait is chosen, as SMG does.
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
    return chosen(this.ofLength(tokens, shares, used, context), "key");
  }

  /** The one in whose stretch the length is, or of those with lengths like it in theirs one that has less to do. */
  private ofLength<C extends Candidate>(
    tokens: number,
    shares: LengthShares,
    used: readonly C[],
    { load }: PolicyContext,
  ): C {
    let sum = 0;
    for (const candidate of used) sum += 1 / weightOf(candidate);
    const at = shares.below(tokens) * sum;
    const [from, to] = shares.alike(tokens);
    const costs = this.weights.begin(used.length);
    let home = used.length - 1;
    let begin = 0;
    for (let i = 0; i < used.length; i++) {
      const candidate = used[i]!;
      const weight = weightOf(candidate);
      const end = begin + 1 / weight;
      const isHome = begin <= at && at < end;
      if (isHome) home = i;
      const alike = Math.min(end, to * sum) - Math.max(begin, from * sum);
      const isAlike = isHome || alike * weight > LEAST_ALIKE;
      const work = this.loads.queued[i]! + batchTokens(this.loads.running[i]!, candidate.maxRunning) - DECODE_TOKENS;
      costs[i] = isAlike ? work * weight : Number.POSITIVE_INFINITY;
      begin = end;
    }
    const best = this.weights.least(used, load, this.turn);
    return costs[home]! <= costs[used.indexOf(best)]! ? used[home]! : best;
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
