/**
 * The oracle: the policies of the gateway, but for what they know. Theirs is each engine's cache as it is now, and its queue to the
 * token; a gateway has events that come a little later, and counts what it sent.
 */

import { defaultRules } from "../../src/fleet/routing.ts";
import { policyOf } from "../../src/routing/policies/index.ts";
import type { Candidate, CandidateLoad, PolicyContext, PolicyName, PrefixIndex } from "../../src/routing/policy.ts";
import type { ChainKeys, PrefixMatch } from "../../src/threads/prefix-types.ts";
import { StickyBoard } from "../../src/threads/sticky-board.ts";
import { mixSeed, Random } from "../loadgen/random.ts";
import type { EngineState, Router } from "./replay.ts";

const MODEL = "model";
const START = Date.UTC(2026, 0, 1);
const NO_KEYS = new Int32Array(0);

/** The gateway's defaults. */
const SETTINGS = defaultRules().settings;

/** The caches themselves in the place of an index of them; members are numbers of engines. */
class Caches implements PrefixIndex {
  engines: readonly EngineState[] = [];
  private ids: Uint32Array = new Uint32Array(0);
  private blockSize = 1;

  root(): readonly [number, number] {
    return [0, 0];
  }

  chain(_root: readonly [number, number], ids: Uint32Array, blockSize: number): ChainKeys {
    this.ids = ids;
    this.blockSize = blockSize;
    return { keys: NO_KEYS, count: Math.floor(ids.length / blockSize), blockSize };
  }

  match(): PrefixMatch {
    const { ids, blockSize, engines } = this;
    return {
      depth: (member) => engines[member]!.matchedTokens(ids) / blockSize,
      isExact: () => true,
      spans: () => [],
    };
  }

  /** Nothing need be promised to who sees the queues. */
  promise(): void {}
}

/** A policy that sees the engines from within. */
export function seeing(name: PolicyName, blockSize: number): Router {
  const policy = policyOf(name);
  const index = new Caches();
  const sticky = StickyBoard.create();
  const random = new Random(mixSeed(0x6f7261));
  let candidates: readonly Candidate[] = [];
  return ({ ids, atMs, key }, engines) => {
    index.engines = engines;
    if (candidates.length !== engines.length) candidates = engines.map((_, i) => candidateOf(i, blockSize));
    const context: PolicyContext = {
      model: MODEL,
      leg: "regular",
      load: loadOf(engines),
      index,
      sticky,
      settings: SETTINGS,
      now: START + atMs,
      random: () => random.unit() - 2 ** -32,
      count: () => {},
    };
    const isKeyed = name === "manual" || name === "consistent_hashing";
    const ask = { tokenIds: ids, tokens: ids.length, ...(isKeyed && { routingKey: key }) };
    return policy.choose(candidates, ask, context).worker.slot;
  };
}

const candidateOf = (slot: number, blockSize: number): Candidate => ({
  id: `engine-${slot}`,
  url: `grpc://engine-${slot}:50051`,
  slot,
  member: slot,
  priority: 50,
  cost: 1,
  blockSize,
  maxRunning: 256,
  sendsEvents: true,
});

const loadOf = (engines: readonly EngineState[]): CandidateLoad => ({
  running: ({ slot }) => engines[slot]!.open,
  queuedTokens: ({ slot }) => engines[slot]!.queuedTokens(),
  kvUsage: ({ slot }) => {
    const { blocksInUse, blocksTotal } = engines[slot]!.core.load();
    return blocksInUse / blocksTotal;
  },
  throughput: ({ slot }) => engines[slot]!.core.load().throughput,
  lastUsed: ({ slot }) => engines[slot]!.lastUsedAt,
});
