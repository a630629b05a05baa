/**
 * The oracle: the policies of the gateway, but for what they know. Theirs is each engine's cache as it is now, and its queue to the
 * token; a gateway has events that come a little later, and counts what it sent.
 */

import type { CandidateLoad, PolicyName, PrefixIndex } from "../../src/routing/policy.ts";
import type { ChainKeys, PrefixMatch } from "../../src/threads/prefix-types.ts";
import { blockHashes, keysOf } from "./block-hashes.ts";
import { policyRouter } from "./policy-router.ts";
import type { EngineState, Router } from "./replay.ts";

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
    return keysOf(blockHashes(ids, blockSize), blockSize);
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
export function seeing(name: PolicyName): Router {
  const caches = new Caches();
  const { choose } = policyRouter(name, caches, loadOf(caches), true);
  return (ask, engines) => {
    caches.engines = engines;
    return { engine: choose(ask, engines).worker.slot };
  };
}

const loadOf = (caches: Caches): CandidateLoad => ({
  running: ({ slot }) => caches.engines[slot]!.open,
  queuedTokens: ({ slot }) => caches.engines[slot]!.queuedTokens(),
  kvUsage: ({ slot }) => {
    const { blocksInUse, blocksTotal } = caches.engines[slot]!.core.load();
    return blocksInUse / blocksTotal;
  },
  throughput: ({ slot }) => caches.engines[slot]!.core.load().throughput,
  lastUsed: ({ slot }) => caches.engines[slot]!.lastUsedAt,
});
