/**
 * What each policy does to a fleet, by a model in virtual time: the real policies and engines that are sums of milliseconds, so that
 * nothing of this machine is in the figures. It is what the constants of `src/routing/score.ts` were tuned by; the gateway itself is
 * measured by `bench/routing/fleet.ts`.
 *
 *     node scripts/bun.mjs bench/routing/model.ts [--shape NAME] [--policy NAME] [--no-events] [--seeds 3]
 */

import { parseArgs } from "node:util";
import { POLICY_NAMES } from "../../src/config/policy-names.ts";
import { defaultRules } from "../../src/fleet/routing.ts";
import { policyOf } from "../../src/routing/policies/index.ts";
import type { Candidate, CandidateLoad, PolicyContext, PolicyName } from "../../src/routing/policy.ts";
import { MapIndex, MapSticky } from "../../test/unit/routing/map-index.ts";
import { Random } from "../loadgen/random.ts";
import { BLOCK, ModelEngine } from "./model-engine.ts";
import { type Arrival, SHAPES, type Shape } from "./model-shapes.ts";

const SETTINGS = defaultRules().settings;

/** One way between gateway and engine, and how old what an engine tells of its load is at most. */
const WIRE_MS = 1;
const EVENT_MS = 5;
const POLL_MS = 1000;
const START = Date.UTC(2030, 0, 1);
const PROMISE_MS = { events: 10_000, none: 1_800_000 };

/** Things to happen, by time, in the order in which they were put there. */
class Agenda {
  private readonly heap: { readonly time: number; readonly turn: number; readonly what: () => void }[] = [];
  private turns = 0;

  readonly at = (time: number, what: () => void): void => {
    const { heap } = this;
    const item = { time, turn: this.turns++, what };
    let at = heap.push(item) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (!isBefore(item, heap[up]!)) break;
      heap[at] = heap[up]!;
      at = up;
    }
    heap[at] = item;
  };

  run(): void {
    for (let next = this.take(); next !== undefined; next = this.take()) next.what();
  }

  private take() {
    const { heap } = this;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let down = 2 * at + 1;
      if (down >= heap.length) break;
      if (down + 1 < heap.length && isBefore(heap[down + 1]!, heap[down]!)) down++;
      if (!isBefore(heap[down]!, last)) break;
      heap[at] = heap[down]!;
      at = down;
    }
    heap[at] = last;
    return first;
  }
}

const isBefore = (a: { time: number; turn: number }, b: { time: number; turn: number }): boolean =>
  a.time < b.time || (a.time === b.time && a.turn < b.turn);

interface Row {
  readonly ttft: number;
  readonly p99: number;
  readonly whole: number;
  /** Of the prompts' tokens, those that a cache held; and of those that any worker had computed before. */
  readonly hits: number;
  readonly possible: number;
  readonly spread: number;
}

interface Worker extends Candidate {
  running: number;
  queued: number;
  usage: number;
  usedAt: number;
  requests: number;
}

function simulate(shape: Shape, name: PolicyName, hasEvents: boolean, seed: number): Row {
  const agenda = new Agenda();
  const index = new MapIndex(hasEvents ? PROMISE_MS.events : PROMISE_MS.none);
  const policy = policyOf(name);
  const random = new Random(seed);
  const workers = Array.from(
    { length: shape.workers },
    (_, i): Worker => ({
      id: `w${i}`,
      url: `grpc://10.0.0.${i}:9000`,
      slot: i,
      member: i,
      priority: 50,
      cost: 1,
      blockSize: BLOCK,
      maxRunning: 256,
      sendsEvents: hasEvents,
      running: 0,
      queued: 0,
      usage: 0,
      usedAt: 0,
      requests: 0,
    }),
  );
  const engines = workers.map(({ member }) => {
    const later = (what: () => void) => hasEvents && agenda.at(clock + EVENT_MS, what);
    const events = {
      stored: (key: number) => void later(() => index.add(key, member)),
      removed: (key: number) => void later(() => index.drop(key, member)),
    };
    return new ModelEngine(shape.kvTokens, events, (time, what) =>
      agenda.at(time, () => {
        clock = time;
        what();
      }),
    );
  });
  const load: CandidateLoad = {
    running: (worker) => workers[worker.slot]!.running,
    queuedTokens: (worker) => workers[worker.slot]!.queued,
    kvUsage: (worker) => workers[worker.slot]!.usage,
    throughput: () => undefined,
    lastUsed: (worker) => workers[worker.slot]!.usedAt,
  };
  const sticky = new MapSticky();
  const arrivals = shape.arrivals(seed);
  const end = arrivals.at(-1)!.at;
  let clock = 0;
  const ttfts: number[] = [];
  let whole = 0;
  let cachedTokens = 0;
  let tokens = 0;
  let seenTokens = 0;
  const seen = new Set<number>();

  const poll = (time: number): void => {
    for (const worker of workers) worker.usage = engines[worker.slot]!.usage;
    if (time < end) agenda.at(time + POLL_MS, () => poll(time + POLL_MS));
  };
  poll(0);

  const arrive = ({ at, ids, answer, session }: Arrival): void => {
    const now = START + at;
    const context: PolicyContext = {
      model: "model",
      leg: "regular",
      load,
      index,
      sticky,
      settings: SETTINGS,
      now,
      random: () => random.below(0x4000_0000) / 0x4000_0000,
      count: () => {},
    };
    const ask = { tokenIds: ids, tokens: ids.length, sessionKey: session };
    const { worker, matchedTokens, chain } = policy.choose(workers, ask, context);
    const { keys } = chain ?? index.chain(index.root("model", BLOCK), ids, BLOCK);
    if (chain !== undefined) index.promise(chain, Math.floor(matchedTokens / BLOCK), worker.member, now);
    const waits = ids.length - matchedTokens;
    worker.running++;
    worker.queued += waits;
    worker.usedAt = now;
    worker.requests++;
    tokens += ids.length;
    let known = 0;
    for (let i = 0; i < keys.length; i += 2) {
      const key = (keys[i]! >>> 0) * 0x10_0000 + (keys[i + 1]! & 0xf_ffff);
      if (seen.has(key)) known += BLOCK;
      seen.add(key);
    }
    seenTokens += Math.min(known, ids.length - 1);
    const request = {
      keys,
      tokens: ids.length,
      answer,
      onFirst: (time: number, cached: number) => {
        ttfts.push(time + WIRE_MS - at);
        cachedTokens += cached;
        agenda.at(time + WIRE_MS, () => void (worker.queued -= waits));
      },
      onEnd: (time: number) => {
        whole += time + WIRE_MS - at;
        agenda.at(time + WIRE_MS, () => void worker.running--);
      },
    };
    agenda.at(at + WIRE_MS, () => {
      clock = at + WIRE_MS;
      engines[worker.slot]!.add(request, at + WIRE_MS);
    });
  };
  for (const arrival of arrivals) agenda.at(arrival.at, () => arrive(arrival));
  agenda.run();

  ttfts.sort((a, b) => a - b);
  const mean = arrivals.length / workers.length;
  return {
    ttft: ttfts.reduce((sum, one) => sum + one, 0) / ttfts.length,
    p99: ttfts[Math.floor(0.99 * (ttfts.length - 1))]!,
    whole: whole / ttfts.length,
    hits: cachedTokens / tokens,
    possible: seenTokens / tokens,
    spread: Math.max(...workers.map(({ requests }) => requests)) / mean,
  };
}

const meanOf = (rows: readonly Row[], of: (row: Row) => number): number =>
  rows.reduce((sum, row) => sum + of(row), 0) / rows.length;

const { values: options } = parseArgs({
  options: {
    shape: { type: "string" },
    policy: { type: "string" },
    "no-events": { type: "boolean" },
    seeds: { type: "string", default: "2" },
  },
});
for (const shape of SHAPES) {
  if (options.shape !== undefined && !options.shape.split(",").includes(shape.name)) continue;
  console.log(`\n${shape.name}: ${shape.what}\n`);
  console.log("| policy | TTFT ms | p99 | whole ms | hits % | possible % | max/mean |\n|--|--:|--:|--:|--:|--:|--:|");
  for (const policy of POLICY_NAMES) {
    if (options.policy !== undefined && !options.policy.split(",").includes(policy)) continue;
    const rows = Array.from({ length: Number(options.seeds) }, (_, i) =>
      simulate(shape, policy, options["no-events"] !== true, 1234 + i),
    );
    const cell = (of: (row: Row) => number, digits: number) => meanOf(rows, of).toFixed(digits);
    console.log(
      `| ${policy} | ${cell((row) => row.ttft, 1)} | ${cell((row) => row.p99, 0)} | ${cell((row) => row.whole, 0)} | ${cell((row) => 100 * row.hits, 1)} | ${cell((row) => 100 * row.possible, 1)} | ${cell((row) => row.spread, 2)} |`,
    );
  }
}
