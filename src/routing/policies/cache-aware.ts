/** `cache_aware`, the default: what a prompt still costs at a worker that has part of it, against the work that waits there. */
import type { RouteAsk } from "../ask.ts";
import type { Branch, Candidate, Choice, PolicyContext } from "../policy.ts";
import {
  batchTokens,
  DECODE_TOKENS,
  nearTokens,
  pressure,
  recentTokens,
  recomputeWeight,
  SESSION_SHARE,
} from "../score.ts";
import { BasePolicy } from "./base.ts";
import { HotPrefixes } from "./hot-prefixes.ts";
import { distance, hashText } from "./keys.ts";
import { Weights } from "./least.ts";
import { Loads } from "./loads.ts";
import { Outliers } from "./outliers.ts";
import { RecentWork } from "./recent-work.ts";
import { weightOf } from "./weight.ts";

/**
 * The least cost wins. Among those that are as good as equal it is the longest prefix; then, of a session, the worker that its key is
 * nearest to, so that its turns stay together before anything is cached; else the least running, then who was given least of late.
 */
export class CacheAwarePolicy extends BasePolicy {
  readonly name = "cache_aware";
  override readonly needsTokens = true;
  protected override readonly isScored = true;
  private readonly loads = new Loads();
  private readonly outliers = new Outliers();
  private readonly recent = new RecentWork();
  private readonly hot = new HotPrefixes();
  /** The longest prefix that anybody holds, in tokens. */
  private longest = 0;
  /** What the candidates have to do: each, and on average. */
  private readonly work = new Weights();
  private meanWork = 0;

  protected among<C extends Candidate>(
    used: readonly C[],
    _candidates: readonly C[],
    ask: RouteAsk,
    context: PolicyContext,
    explains: boolean,
  ): Choice<C> {
    this.lookup.find(used, ask, context);
    this.loads.read(used, context.load);
    const isBalanced = this.outliers.find(used, this.loads, this.lookup, context);
    const best = this.weigh(used, ask, context);
    const choice = this.nearest(used, best, isBalanced, ask, context);
    if (!explains) {
      const { worker, matchedTokens } = choice;
      this.settle(used.indexOf(worker), matchedTokens);
      this.recent.add(worker, (lengthOf(ask) - matchedTokens + DECODE_TOKENS) * weightOf(worker));
    }
    return choice;
  }

  /** Weighs all of them; the index of the best that is not passed over. */
  private weigh(used: readonly Candidate[], ask: RouteAsk, { settings, now }: PolicyContext): number {
    const { lookup, loads, outliers } = this;
    const count = used.length;
    const costs = this.weights.begin(count);
    const works = this.work.begin(count);
    const tokens = lengthOf(ask);
    const perToken = recomputeWeight(tokens, loads.meanQueued);
    const perPressure = settings.kvPressureWeight * settings.meanPrefillTokens;
    const given = this.recent.given(used, now);
    const meanGiven = this.recent.mean;
    const lost = this.lossOfLongest(used, now);
    const isPlaced = isUnseen(ask);
    let best = -1;
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const candidate = used[i]!;
      const weight = weightOf(candidate);
      sum += works[i] = (loads.queued[i]! + batchTokens(loads.running[i]!, candidate.maxRunning)) * weight;
      const again = Math.max(0, perToken * (this.longest - lookup.matched(i)) * weight - lost);
      costs[i] =
        perToken * (tokens - this.longest) * weight +
        again +
        works[i]! +
        perPressure * pressure(loads.kvUsage[i]!) +
        (isPlaced ? 0 : recentTokens(given[i]! - meanGiven));
      if (!outliers.has(i) && (best < 0 || costs[i]! < costs[best]!)) best = i;
    }
    this.meanWork = sum / count;
    return best;
  }

  /** Finds the longest prefix; what was lost of late by sending requests to those that hold it. */
  private lossOfLongest(used: readonly Candidate[], now: number): number {
    const { lookup } = this;
    const { holder } = lookup;
    this.longest = lookup.matched(holder);
    const chain = this.longest === 0 ? undefined : lookup.chainOf(used[holder]!);
    return chain === undefined ? 0 : this.hot.lossOf(chain, this.longest / chain.blockSize, now);
  }

  /** The candidate of this index was chosen, which holds so much. */
  private settle(chosen: number, matchedTokens: number): void {
    if (this.longest === 0) return;
    if (matchedTokens < this.longest) this.hot.clear();
    else this.hot.add(this.work.at(chosen) - this.meanWork);
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
    const key = keyOf(ask);
    const hash = key === undefined ? undefined : hashText(key);
    const { cost, blockSize } = used[best]!;
    const near = isUnseen(ask)
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
    const more = this.loads.running[its]! - this.loads.running[others]! || this.recent.more(its, others);
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

const keyOf = ({ sessionKey, routingKey }: RouteAsk): string | undefined => sessionKey ?? routingKey;

/** What caches hold of it is not known; its key says where it belongs. */
const isUnseen = (ask: RouteAsk): boolean => ask.tokenIds === undefined && keyOf(ask) !== undefined;

const lengthOf = ({ tokenIds, tokens }: RouteAsk): number => tokenIds?.length ?? tokens;
