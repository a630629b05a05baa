/**
 * What a gateway knows, in virtual time: of caches what engines told of them, or what it sent them; of queues what it counts; and how full
 * the caches are by what was told within the last second.
 */
import type { CandidateLoad, PolicyName, PrefixIndex } from "../../src/routing/policy.ts";
import type { KvEvent } from "../../src/simulator/core/kv-events.ts";
import type { ChainKeys, PrefixMatch } from "../../src/threads/prefix-types.ts";
import { blockHashes, keysOf } from "./block-hashes.ts";
import { policyRouter } from "./policy-router.ts";
import type { EngineState, Router } from "./replay.ts";

/** How old what an engine tells of its load is at most. */
const POLL_MS = 1000;
/** For how long it is believed what an engine was sent, of those that tell of their caches and of others: docs/routing.md. */
const PROMISE_MS = { told: 10_000, guessed: 1_800_000 };

/** An index by maps; members are numbers of engines. */
class KnownBlocks implements PrefixIndex {
  private readonly told = new Map<number, Set<number>>();
  /** Of each block the members with the time until which that is believed. */
  private readonly sent = new Map<number, Map<number, number>>();
  private hashes: readonly number[] = [];

  constructor(private readonly promiseMs: number) {}

  root(): readonly [number, number] {
    return [0, 0];
  }

  chain(_root: readonly [number, number], ids: Uint32Array, blockSize: number): ChainKeys {
    this.hashes = blockHashes(ids, blockSize);
    return keysOf(this.hashes, blockSize);
  }

  match(_chain: ChainKeys, now = 0): PrefixMatch {
    const { hashes, told, sent } = this;
    const depthOf = (isHeld: (hash: number) => boolean): number => {
      const end = hashes.findIndex((hash) => !isHeld(hash));
      return end < 0 ? hashes.length : end;
    };
    const exact = (member: number) => depthOf((hash) => told.get(hash)?.has(member) ?? false);
    const guessed = (member: number) => depthOf((hash) => (sent.get(hash)?.get(member) ?? 0) >= now);
    return {
      depth: (member) => Math.max(exact(member), guessed(member)),
      isExact: (member) => exact(member) >= guessed(member),
      spans: () => [],
    };
  }

  /** Of the last chain. */
  promise(_chain: ChainKeys, from: number, member: number, now: number): void {
    for (const hash of this.hashes.slice(from)) {
      let members = this.sent.get(hash);
      if (members === undefined) this.sent.set(hash, (members = new Map()));
      members.set(member, now + this.promiseMs);
    }
  }

  hear(events: readonly KvEvent[], member: number): void {
    for (const event of events) {
      if (event.kind === "stored") for (const { hash } of event.blocks) this.add(hash, member);
      else if (event.kind === "removed") for (const hash of event.hashes) this.told.get(hash)?.delete(member);
      else for (const members of this.told.values()) members.delete(member);
    }
  }

  private add(hash: number, member: number): void {
    const members = this.told.get(hash);
    if (members === undefined) this.told.set(hash, new Set([member]));
    else members.add(member);
  }
}

/** What a gateway counts of an engine. */
interface Counted {
  running: number;
  queued: number;
  usage: number;
  usedAt: number;
}

/** A policy that knows what a gateway of so many threads does; `hasEvents`: the engines tell of their caches. */
export function knowing(name: PolicyName, hasEvents: boolean, threads = 1): Router {
  const index = new KnownBlocks(hasEvents ? PROMISE_MS.told : PROMISE_MS.guessed);
  let counted: readonly Counted[] = [];
  let polledAt = Number.NEGATIVE_INFINITY;
  const load: CandidateLoad = {
    running: ({ slot }) => counted[slot]!.running,
    queuedTokens: ({ slot }) => counted[slot]!.queued,
    kvUsage: ({ slot }) => counted[slot]!.usage,
    throughput: () => undefined,
    lastUsed: ({ slot }) => counted[slot]!.usedAt,
  };
  const listen = (engines: readonly EngineState[], atMs: number): void => {
    if (counted.length === 0) counted = engines.map(() => ({ running: 0, queued: 0, usage: 0, usedAt: 0 }));
    const isPoll = atMs >= polledAt + POLL_MS;
    if (isPoll) polledAt = atMs;
    for (const [i, { core }] of engines.entries()) {
      core.cache.events.listening = hasEvents;
      index.hear(core.cache.events.take() ?? [], i);
      if (!isPoll) continue;
      const { blocksInUse, blocksTotal } = core.load();
      counted[i]!.usage = blocksInUse / blocksTotal;
    }
  };
  const { choose, timeOf } = policyRouter(name, index, load, hasEvents, threads);
  return (ask, engines) => {
    listen(engines, ask.atMs);
    const { worker, matchedTokens, chain } = choose(ask, engines);
    const now = timeOf(ask.atMs);
    if (chain !== undefined) index.promise(chain, Math.floor(matchedTokens / chain.blockSize), worker.member, now);
    const its = counted[worker.slot]!;
    const waits = ask.ids.length - matchedTokens;
    its.running++;
    its.queued += waits;
    its.usedAt = now;
    return {
      engine: worker.slot,
      onFirst: () => void (its.queued -= waits),
      onEnd: () => void its.running--,
    };
  };
}

/** Each beginning at one engine, the next one at the next engine: what there is to gain by caches alone, and how even that is by chance. */
export function parted(): Router {
  const homes = new Map<string, number>();
  return ({ key }, engines) => {
    let engine = homes.get(key);
    if (engine === undefined) homes.set(key, (engine = homes.size % engines.length));
    return { engine };
  };
}
