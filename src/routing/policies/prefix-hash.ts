/** `prefix_hash`: prompts that begin alike go to one worker, unless it has more than its share of the load. */
import type { RouteAsk } from "../ask.ts";
import type { Candidate, Choice, PolicyContext } from "../policy.ts";
import { BasePolicy, chosen } from "./base.ts";
import { distance, hashText, hashTokens } from "./keys.ts";
import { weightOf } from "./weight.ts";

/**
 * Consistent hashing with bounded loads: the nearest worker that has less than the settings' factor times its share of all requests, this
 * one included. A prompt without tokens goes by its routing or session key, and without one to the least loaded.
 */
export class PrefixHashPolicy extends BasePolicy {
  readonly name = "prefix_hash";
  override readonly needsTokens = true;

  protected among<C extends Candidate>(
    used: readonly C[],
    _candidates: readonly C[],
    ask: RouteAsk,
    context: PolicyContext,
  ): Choice<C> {
    const hash = this.hash(ask, context.settings.prefixTokenCount);
    if (hash === undefined) {
      context.count("no_tokens");
      return chosen(this.leastLoaded(used, context), "miss");
    }
    const { load } = context;
    const far = this.weights.begin(used.length);
    let requests = 1;
    let shares = 0;
    for (let i = 0; i < used.length; i++) {
      const candidate = used[i]!;
      far[i] = distance(hash, candidate);
      requests += load.running(candidate);
      shares += 1 / weightOf(candidate);
    }
    const perShare = (context.settings.prefixHashLoadFactor * requests) / shares;
    let nearest = 0;
    let best = -1;
    for (let i = 0; i < used.length; i++) {
      if (far[i]! < far[nearest]!) nearest = i;
      if (best >= 0 && far[i]! >= far[best]!) continue;
      const candidate = used[i]!;
      if (load.running(candidate) < Math.ceil(perShare / weightOf(candidate))) best = i;
    }
    if (best < 0) {
      context.count("fallback_least_load");
      return chosen(this.leastLoaded(used, context), "balance");
    }
    context.count(best === nearest ? "ring_hit" : "load_balance_walk");
    return chosen(used[best]!, best === nearest ? "key" : "balance");
  }

  /** The adapter belongs to the prefix, as to the cache's. */
  private hash({ tokenIds, lora, routingKey, sessionKey }: RouteAsk, count: number): number | undefined {
    if (tokenIds !== undefined && tokenIds.length > 0)
      return hashTokens(tokenIds, count, lora === undefined ? 0 : hashText(lora));
    const key = routingKey ?? sessionKey;
    return key === undefined ? undefined : hashText(key);
  }

  private leastLoaded<C extends Candidate>(used: readonly C[], { load }: PolicyContext): C {
    const weights = this.weights.begin(used.length);
    for (let i = 0; i < used.length; i++) weights[i] = (load.running(used[i]!) + 1) * weightOf(used[i]!);
    return this.weights.least(used, load, this.turn);
  }
}
