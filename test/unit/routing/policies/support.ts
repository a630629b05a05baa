/** Workers, loads and surroundings for a policy to choose in. */

import { defaultRules } from "../../../../src/fleet/routing.ts";
import type { RouteAsk } from "../../../../src/routing/ask.ts";
import type { Candidate, Choice, Policy, PolicyContext } from "../../../../src/routing/policy.ts";
import type { RoutingSettings } from "../../../../src/routing/settings.ts";
import { random } from "../../generation/random.ts";
import { MapIndex, MapSticky } from "../map-index.ts";

/** The defaults of the options. */
export const SETTINGS = defaultRules().settings;

export const NOW = Date.UTC(2030, 0, 1);
export const BLOCK = 16;

/** A worker and what it has to do. */
export interface Worker extends Candidate {
  running: number;
  queued: number;
  kv: number | undefined;
  throughput: number | undefined;
  usedAt: number;
}

/** Worker number `i`, idle, unless told otherwise. */
export const worker = (i: number, more: Partial<Worker> = {}): Worker => ({
  id: `w${i}`,
  url: `grpc://10.0.0.${i}:9000`,
  slot: 1024 + i,
  member: i,
  priority: 50,
  cost: 1,
  blockSize: BLOCK,
  maxRunning: 0,
  sendsEvents: true,
  running: 0,
  queued: 0,
  kv: undefined,
  throughput: undefined,
  usedAt: 0,
  ...more,
});

export const workers = (...more: readonly Partial<Worker>[]): Worker[] => more.map((its, i) => worker(i, its));

/** So many idle ones. */
export const idle = (count: number): Worker[] => Array.from({ length: count }, (_, i) => worker(i));

/** Token ids that depend on the seed. */
export function ids(length: number, seed = 1): Uint32Array {
  const { below } = random(seed);
  return Uint32Array.from({ length }, () => below(100_000));
}

export const prompt = (tokenIds: Uint32Array, more: Partial<RouteAsk> = {}): RouteAsk => ({
  tokenIds,
  tokens: tokenIds.length,
  ...more,
});

/** Where policies choose among the given workers; the fields may be changed between choices. */
export class Surroundings {
  readonly index = new MapIndex();
  readonly sticky = new MapSticky();
  readonly counted: string[] = [];
  model = "model";
  leg: PolicyContext["leg"] = "regular";
  settings: RoutingSettings = SETTINGS;
  now = NOW;
  private readonly below: (n: number) => number;

  constructor(
    readonly workers: readonly Worker[],
    seed = 7,
  ) {
    this.below = random(seed).below;
  }

  get context(): PolicyContext {
    const of = (slot: number): Worker => this.workers.find((one) => one.slot === slot)!;
    return {
      model: this.model,
      leg: this.leg,
      load: {
        running: ({ slot }) => of(slot).running,
        queuedTokens: ({ slot }) => of(slot).queued,
        kvUsage: ({ slot }) => of(slot).kv,
        throughput: ({ slot }) => of(slot).throughput,
        lastUsed: ({ slot }) => of(slot).usedAt,
      },
      index: this.index,
      sticky: this.sticky,
      settings: this.settings,
      now: this.now,
      random: () => this.below(2 ** 30) / 2 ** 30,
      count: (branch) => void this.counted.push(branch),
    };
  }

  choose(policy: Policy, ask: RouteAsk = { tokens: 100 }, explains = false): Choice<Worker> {
    return policy.choose(this.workers, ask, this.context, explains);
  }

  /** A choice with what follows it: the load, the time and what the index is promised. */
  send(policy: Policy, ask: RouteAsk = { tokens: 100 }): Worker {
    const { worker: its, matchedTokens, chain } = this.choose(policy, ask);
    its.running++;
    its.queued += ask.tokens - matchedTokens;
    its.usedAt = this.now++;
    if (chain !== undefined)
      this.index.promise(chain, Math.floor(matchedTokens / chain.blockSize), its.member, this.now);
    return its;
  }

  /** The worker's cache holds the first `tokens` of the ids: told by events, or guessed. */
  hold(its: Worker, tokenIds: Uint32Array, tokens: number, isExact = true, model = this.model): void {
    const chain = this.index.chain(this.index.root(model, its.blockSize), tokenIds.subarray(0, tokens), its.blockSize);
    if (isExact) this.index.addAll(chain, its.member);
    else this.index.promise(chain, 0, its.member, this.now);
  }
}

/** Of how many choices each worker got, by the workers' order. */
export function counts(around: Surroundings, choose: (turn: number) => Worker, choices: number): number[] {
  const got = around.workers.map(() => 0);
  for (let turn = 0; turn < choices; turn++) got[around.workers.indexOf(choose(turn))]!++;
  return got;
}

/** Chi-square of counts against expected shares of them; a fair draw of k values is above k - 1 + 5 sqrt(2 (k - 1)) once in some thousand times. */
export function isFair(got: readonly number[], shares: readonly number[] = got.map(() => 1)): boolean {
  const sum = got.reduce((a, b) => a + b, 0);
  const all = shares.reduce((a, b) => a + b, 0);
  const square = got.reduce((total, count, i) => {
    const expected = (sum * shares[i]!) / all;
    return total + (count - expected) ** 2 / expected;
  }, 0);
  const free = got.length - 1;
  return square < free + 5 * Math.sqrt(2 * free);
}
