/** `manual`: a key stays with the worker that it was given to. */
import type { ChainKeys } from "../../threads/prefix-types.ts";
import type { RouteAsk } from "../ask.ts";
import type { Candidate, Choice, PolicyContext } from "../policy.ts";
import { BasePolicy, chosen } from "./base.ts";
import { distance, hashText } from "./keys.ts";
import { scopeOf } from "./scope.ts";
import { anyone, weightOf } from "./weight.ts";

/**
 * A key as a block of the prefix index. What gateways tell each other of these they tell of keys as well: that a worker "holds" the block of
 * a key means that the key was given to it.
 */
function blockOf(key: string, own: string, { index }: PolicyContext): ChainKeys {
  const [hi, lo] = index.root(key.slice(0, key.length - own.length), 1, "a key of the policy manual", own);
  return { keys: Int32Array.of(hi, lo), count: 1, blockSize: 1 };
}

/** To whom another gateway gave a key; of several the nearest, so that all gateways agree. */
function givenTo<C extends Candidate>(
  block: ChainKeys,
  own: string,
  candidates: readonly C[],
  { index, now }: PolicyContext,
): C | undefined {
  const match = index.match(block, now);
  const hash = hashText(own);
  let nearest: C | undefined;
  for (const candidate of candidates) {
    if (candidate.member < 0 || match.depth(candidate.member) === 0) continue;
    if (nearest === undefined || distance(hash, candidate) < distance(hash, nearest)) nearest = candidate;
  }
  return nearest;
}

/**
 * The routing key, else the key of the session; without one, anyone. A key remembers two workers: when the first cannot be had the other
 * is asked, and then a new one is assigned by the settings' mode. It stays with its worker whatever that one's priority. Where gateways
 * share what they know, a key that is new here goes where another one sent it within the last half hour.
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
    const its = settings.sharesKeys ? blockOf(key, own, context) : undefined;
    for (const member of members) {
      for (const candidate of candidates) {
        if (candidate.member !== member) continue;
        context.count("occupied_hit");
        if (its !== undefined && !explains) context.index.promise(its, 0, member, now);
        return chosen(candidate, "key");
      }
    }
    const elsewhere = its === undefined || members.length > 0 ? undefined : givenTo(its, own, candidates, context);
    context.count(members.length > 0 ? "occupied_miss" : elsewhere === undefined ? "vacant" : "occupied_hit");
    const worker = elsewhere ?? this.assigned(used, context);
    if (!explains && worker.member >= 0) {
      sticky.assign(key, worker.member, now);
      if (its !== undefined) context.index.promise(its, 0, worker.member, now);
    }
    return chosen(worker, elsewhere === undefined ? "miss" : "key");
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
