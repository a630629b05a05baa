/** `cache_aware`, the default: what a prompt still costs at a worker that has part of it, against the work that waits there. */
import type { RouteAsk } from "../ask.ts";
import type { Branch, Candidate, Choice, PolicyContext } from "../policy.ts";
import { batchTokens, nearTokens, pressure, RECOMPUTE, SESSION_SHARE } from "../score.ts";
import { BasePolicy } from "./base.ts";
import { distance, hashText } from "./keys.ts";
import { Outliers } from "./outliers.ts";
import { weightOf } from "./weight.ts";

/**
 * The least cost wins. Among those that are as good as equal it is the longest prefix; then, of a session, the worker that its key is
 * nearest to, so that its turns stay together before anything is cached; else the least running, then the least recently used.
 */
export class CacheAwarePolicy extends BasePolicy {
  readonly name = "cache_aware";
  override readonly needsTokens = true;
  protected override readonly isScored = true;
  private readonly outliers = new Outliers();

  protected among<C extends Candidate>(
    used: readonly C[],
    _candidates: readonly C[],
    ask: RouteAsk,
    context: PolicyContext,
  ): Choice<C> {
    this.lookup.find(used, ask, context);
    const isBalanced = this.outliers.find(used, this.lookup, context);
    const best = this.weigh(used, ask, context);
    return this.nearest(used, best, isBalanced, ask, context);
  }

  /** Weighs all of them; the index of the best that is no outlier. */
  private weigh(used: readonly Candidate[], ask: RouteAsk, { load, settings }: PolicyContext): number {
    const count = used.length;
    const costs = this.weights.begin(count);
    const tokens = ask.tokenIds?.length ?? ask.tokens;
    const perPressure = settings.kvPressureWeight * settings.meanPrefillTokens;
    let best = -1;
    for (let i = 0; i < count; i++) {
      const candidate = used[i]!;
      const work = RECOMPUTE * (tokens - this.lookup.matched(i)) + load.queuedTokens(candidate);
      const batch = batchTokens(this.outliers.running(i), candidate.maxRunning);
      costs[i] = (work + batch) * weightOf(candidate) + perPressure * pressure(load.kvUsage(candidate));
      if (!this.outliers.has(i) && (best < 0 || costs[i]! < costs[best]!)) best = i;
    }
    return best;
  }

  /** Decides among those that cost as good as the same as the best, and not more per token. */
  private nearest<C extends Candidate>(
    used: readonly C[],
    best: number,
    isBalanced: boolean,
    ask: RouteAsk,
    { load }: PolicyContext,
  ): Choice<C> {
    const { lookup, outliers, weights } = this;
    const key = ask.sessionKey ?? ask.routingKey;
    const hash = key === undefined ? undefined : hashText(key);
    const { cost, blockSize } = used[best]!;
    const isUnseen = hash !== undefined && ask.tokenIds === undefined;
    const near = isUnseen
      ? Math.max(nearTokens(ask.tokens, 1), SESSION_SHARE * ask.tokens)
      : nearTokens(ask.tokens, blockSize);
    const limit = weights.at(best) + near * weightOf(used[best]!);

    const count = used.length;
    let at = this.turn % count;
    let chosen = -1;
    let rivals = 0;
    for (let left = count; left > 0; left--, at = at + 1 === count ? 0 : at + 1) {
      if (outliers.has(at) || weights.at(at) > limit || used[at]!.cost > cost) continue;
      const longer = chosen < 0 ? 1 : lookup.matched(at) - lookup.matched(chosen);
      if (longer < 0) continue;
      if (longer > 0) rivals = 0;
      else if (!this.isBetter(used[at]!, at, used[chosen]!, chosen, hash, load)) {
        rivals++;
        continue;
      } else rivals++;
      chosen = at;
    }
    return this.found(used[chosen]!, chosen, this.branch(chosen, best, isBalanced, rivals > 0, hash));
  }

  private isBetter(
    one: Candidate,
    its: number,
    other: Candidate,
    others: number,
    hash: number | undefined,
    load: PolicyContext["load"],
  ): boolean {
    if (hash !== undefined) return distance(hash, one) < distance(hash, other);
    const more = this.outliers.running(its) - this.outliers.running(others);
    return more < 0 || (more === 0 && load.lastUsed(one) < load.lastUsed(other));
  }

  private branch(
    chosen: number,
    best: number,
    isBalanced: boolean,
    hasRivals: boolean,
    hash: number | undefined,
  ): Branch {
    if (!isBalanced) return "balance";
    if (hasRivals && hash !== undefined) return "key";
    if (this.lookup.matched(chosen) === 0) return "miss";
    return hasRivals || chosen !== best ? "tie" : "hit";
  }
}
