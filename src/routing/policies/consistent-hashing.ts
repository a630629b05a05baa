/** `consistent_hashing`: what has one key goes to one worker. */
import type { RouteAsk } from "../ask.ts";
import type { Candidate, Choice, PolicyContext } from "../policy.ts";
import { BasePolicy, chosen } from "./base.ts";
import { distance, hashText } from "./keys.ts";
import { anyone } from "./weight.ts";

/**
 * The routing key, else the key of the session, else anyone. SMG goes on to the client's credentials and address, which sends all that
 * one application asks to one worker.
 */
export class ConsistentHashingPolicy extends BasePolicy {
  readonly name = "consistent_hashing";

  protected among<C extends Candidate>(
    used: readonly C[],
    _candidates: readonly C[],
    ask: RouteAsk,
    context: PolicyContext,
  ): Choice<C> {
    const key = ask.routingKey ?? ask.sessionKey;
    if (key === undefined) {
      context.count("random_fallback");
      return chosen(anyone(used, context), "turn");
    }
    const hash = hashText(key);
    let best = used[0]!;
    let least = distance(hash, best);
    for (let i = 1; i < used.length; i++) {
      const its = distance(hash, used[i]!);
      if (its >= least) continue;
      best = used[i]!;
      least = its;
    }
    context.count("routing_key_hit");
    return chosen(best, "key");
  }

  protected override onTarget(isThere: boolean, context: PolicyContext): void {
    context.count(isThere ? "target_worker_hit" : "target_worker_miss");
  }
}
