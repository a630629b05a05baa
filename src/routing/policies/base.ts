/** What all policies do alike: a worker that the client names, a single candidate, priorities, and how a choice is explained. */
import type { RouteAsk } from "../ask.ts";
import type { Branch, Candidate, CandidateScore, Choice, Policy, PolicyContext, PolicyName } from "../policy.ts";
import { Weights } from "./least.ts";
import { PrefixLookup } from "./lookup.ts";
import { targetOf } from "./target.ts";
import { Tier } from "./tier.ts";

/** An instance belongs to one thread: what it keeps is memory to work in, and never decides a choice but by turns among equals. */
export abstract class BasePolicy implements Policy {
  abstract readonly name: PolicyName;
  readonly needsTokens: boolean = false;
  /** `weights` hold a score of each that `among` was given. */
  protected readonly isScored: boolean = false;
  protected readonly weights = new Weights();
  protected readonly lookup = new PrefixLookup();
  /** Where the search among equals begins. */
  protected turn = 0;
  private readonly tier = new Tier();
  private readonly single: Candidate[] = [];

  choose<C extends Candidate>(
    candidates: readonly C[],
    ask: RouteAsk,
    context: PolicyContext,
    explains = false,
  ): Choice<C> {
    if (explains) return this.explain(candidates, ask, context);
    const fixed = this.fixed(candidates, ask, context);
    if (fixed !== undefined) {
      if (fixed.branch === "target") this.onTarget(true, context);
      return fixed;
    }
    const choice = this.among(this.tier.of(candidates, context.load), candidates, ask, context, false);
    this.turn = (this.turn + 1) & 0x3fff_ffff;
    return choice;
  }

  /**
   * The choice among `used`, those whose turn it is by priority, of all `candidates`; two at least, or one where the others are not used.
   * With `explains` it changes nothing that lasts.
   */
  protected abstract among<C extends Candidate>(
    used: readonly C[],
    candidates: readonly C[],
    ask: RouteAsk,
    context: PolicyContext,
    explains: boolean,
  ): Choice<C>;

  /** A client named a worker, which is there or not. */
  protected onTarget(_isThere: boolean, _context: PolicyContext): void {}

  private fixed<C extends Candidate>(
    candidates: readonly C[],
    ask: RouteAsk,
    context: PolicyContext,
  ): Choice<C> | undefined {
    if (ask.target !== undefined) {
      const target = this.target(candidates, ask.target, context);
      if (target !== undefined) return this.given(target, "target", ask, context);
    }
    if (candidates.length > 1) return undefined;
    const only = candidates[0]!;
    // what it is given now it will hold when the others are back
    return context.hasOthers === true ? this.given(only, "only", ask, context) : chosen(only, "only");
  }

  private target<C extends Candidate>(candidates: readonly C[], target: string, context: PolicyContext): C | undefined {
    try {
      return targetOf(candidates, target, context.leg);
    } catch (error) {
      this.onTarget(false, context);
      throw error;
    }
  }

  /** A worker that was not chosen here; what it has of the prompt counts all the same where the policy goes by that. */
  private given<C extends Candidate>(worker: C, branch: Branch, ask: RouteAsk, context: PolicyContext): Choice<C> {
    if (!this.needsTokens || ask.tokenIds === undefined) return chosen(worker, branch);
    this.single[0] = worker;
    this.lookup.find(this.single, ask, context);
    return this.found(worker, 0, branch);
  }

  /** A choice with what the last lookup found for the candidate of this index. */
  protected found<C extends Candidate>(worker: C, index: number, branch: Branch): Choice<C> {
    const { lookup } = this;
    return {
      worker,
      matchedTokens: lookup.matched(index),
      isExact: lookup.isExact(index),
      branch,
      chain: lookup.chainOf(worker),
    };
  }

  /** Told in full, whatever the policy looks at by itself. */
  private explain<C extends Candidate>(candidates: readonly C[], ask: RouteAsk, context: PolicyContext): Choice<C> {
    const silent = withoutCounts(context);
    const fixed = this.fixed(candidates, ask, silent);
    const used = this.tier.of(candidates, silent.load);
    const free = this.among(used, candidates, ask, silent, true);
    const scores = this.isScored ? used.map((candidate, i) => [candidate.id, this.weights.at(i)] as const) : [];
    const scoreOf = new Map(scores);
    this.lookup.find(candidates, ask, silent);
    const { worker, branch } = fixed ?? free;
    const { load } = context;
    const at = candidates.indexOf(worker);
    const chain = this.lookup.chainOf(worker);
    return {
      worker,
      branch,
      matchedTokens: this.lookup.matched(at),
      isExact: this.lookup.isExact(at),
      chain,
      scores: candidates.map(
        (candidate, i): CandidateScore => ({
          id: candidate.id,
          matchedTokens: this.lookup.matched(i),
          isExact: this.lookup.isExact(i),
          queuedTokens: load.queuedTokens(candidate),
          running: load.running(candidate),
          kvUsage: load.kvUsage(candidate),
          score: scoreOf.get(candidate.id),
        }),
      ),
      match: chain === undefined ? undefined : context.index.match(chain, context.now),
    };
  }
}

/** A choice that does not go by what caches hold. */
export const chosen = <C extends Candidate>(worker: C, branch: Branch): Choice<C> => ({
  worker,
  matchedTokens: 0,
  isExact: false,
  branch,
});

/** Member by member: a context may be an object of a class. */
function withoutCounts(context: PolicyContext): PolicyContext {
  const { model, leg, hasOthers, load, index, sticky, settings, now } = context;
  return { model, leg, hasOthers, load, index, sticky, settings, now, random: () => context.random(), count: () => {} };
}
