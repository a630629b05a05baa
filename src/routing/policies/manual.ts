/** `manual`: a key stays with the worker that it was given to. */
import type { RouteAsk } from "../ask.ts";
import type { Candidate, Choice, PolicyContext } from "../policy.ts";
import { BasePolicy, chosen } from "./base.ts";
import { scopeOf } from "./scope.ts";
import { anyone, weightOf } from "./weight.ts";

/**
 * The routing key, else the key of the session; without one, anyone. A key remembers two workers: when the first cannot be had the other
 * is asked, and then a new one is assigned by the settings' mode. It stays with its worker whatever that one's priority.
 */
export class ManualPolicy extends BasePolicy {
  readonly name = "manual";

  protected among<C extends Candidate>(
    used: readonly C[],
    candidates: readonly C[],
    ask: RouteAsk,
    context: PolicyContext,
    explains: boolean,
  ): Choice<C> {
    const own = ask.routingKey ?? ask.sessionKey;
    if (own === undefined) {
      context.count("no_routing_id");
      return chosen(anyone(used, context), "turn");
    }
    const { sticky, now, settings } = context;
    const key = `${scopeOf(context)}\n${own}`;
    const members = explains ? sticky.look(key, now, settings.maxIdleMs) : sticky.find(key, now, settings.maxIdleMs);
    for (const member of members) {
      for (const candidate of candidates) {
        if (candidate.member !== member) continue;
        context.count("occupied_hit");
        return chosen(candidate, "key");
      }
    }
    context.count(members.length > 0 ? "occupied_miss" : "vacant");
    const worker = this.assigned(used, context);
    if (!explains && worker.member >= 0) sticky.assign(key, worker.member, now);
    return chosen(worker, "miss");
  }

  private assigned<C extends Candidate>(used: readonly C[], context: PolicyContext): C {
    const { load, sticky, settings } = context;
    const mode = settings.assignmentMode;
    if (mode === "random") return anyone(used, context);
    const weights = this.weights.begin(used.length);
    for (let i = 0; i < used.length; i++) {
      const candidate = used[i]!;
      const has = mode === "min_load" ? load.running(candidate) : sticky.count(candidate.member);
      weights[i] = (has + 1) * weightOf(candidate);
    }
    return this.weights.least(used, load, this.turn);
  }
}
