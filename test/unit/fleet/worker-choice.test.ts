/** Which worker gets a request: the real policies over real boards. */
import { beforeEach, describe, expect, test } from "bun:test";
import { POLICY_NAMES } from "../../../src/config/policy-names.ts";
import type { EngineFacts } from "../../../src/engines/facts.ts";
import { Feature } from "../../../src/engines/features.ts";
import { NoWorkersError, TargetWorkerError } from "../../../src/errors.ts";
import { BoardLoad } from "../../../src/fleet/board-load.ts";
import { Seat } from "../../../src/fleet/crew.ts";
import { UNOBSERVED } from "../../../src/fleet/dispatch/observer.ts";
import type { RouteReport } from "../../../src/fleet/explain.ts";
import type { ChoiceNote, LeaseAsk, RouteTrace } from "../../../src/fleet/lease.ts";
import { defaultRules } from "../../../src/fleet/routing.ts";
import type { WorkerEntry } from "../../../src/fleet/snapshot.ts";
import { FleetView } from "../../../src/fleet/view.ts";
import { chainRoot } from "../../../src/routing/chain.ts";
import type { PolicyName } from "../../../src/routing/policy.ts";
import { prefixIndex } from "../../../src/routing/prefix-index.ts";
import { FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { PrefixBoard } from "../../../src/threads/prefix-board.ts";
import type { PrefixWriter } from "../../../src/threads/prefix-types.ts";
import { StickyBoard } from "../../../src/threads/sticky-board.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { chainOf, TestCaches } from "../../support/prefix.ts";
import { ScriptedEngine } from "../generation/scripted-engine.ts";
import { modelEntry } from "../server/gateway.ts";

const RULES = { failures: 1, rate: 0.5, successes: 1, timeoutMs: 60_000, windowMs: 60_000 };
const MODEL = modelEntry({ id: "m", aliases: ["alias"] });

let board: FleetBoard;
let writer: PrefixWriter;
let view: FleetView;
let chosen: { id: string; choice: ChoiceNote }[];
let branches: string[];
let cached: [predicted: number, actual: number, prompt: number][];

/** A thread's view of a fleet that goes by a policy. */
function open(policy: PolicyName = "cache_aware", decode: PolicyName = "least_load"): void {
  board = FleetBoard.create(1, RULES);
  const prefix = PrefixBoard.create(1, 4);
  writer = prefix.writer();
  chosen = [];
  branches = [];
  cached = [];
  view = new FleetView(board, 0, () => new ScriptedEngine(), {
    clock: new FakeClock(),
    routing: {
      ...defaultRules(),
      policies: { regular: policy, prefill: policy, decode },
      index: prefixIndex(prefix, 0),
      sticky: StickyBoard.create(),
    },
    observer: {
      ...UNOBSERVED,
      chosen: ({ id }, choice) => chosen.push({ id, choice }),
      branched: (_, branch) => branches.push(branch),
      cached: (_, { predictedTokens }, tokens, prompt) => cached.push([predictedTokens, tokens, prompt]),
    },
  });
}
beforeEach(() => open());

function worker(id: string, more: Partial<WorkerEntry> = {}): WorkerEntry {
  const slot = board.claim();
  board.setState(slot, WorkerState.ready);
  return {
    id,
    slot,
    url: `grpc://${id}:1`,
    dialect: "scripted",
    model: "m",
    member: writer.claim(slot, 0),
    blockSize: 16,
    ...more,
  };
}

const serve = (...workers: WorkerEntry[]) =>
  view.apply({ workers, expected: workers.length, models: [MODEL], tokenizers: [] });

const prompt = (seed: number, tokens = 1600): LeaseAsk => {
  const tokenIds = Uint32Array.from({ length: tokens }, (_, i) => seed * 1_000_003 + i);
  return { route: { tokenIds, tokens } };
};
const lease = (ask: LeaseAsk) => view.lease(view.model("m"), ask);
const explain = (ask: LeaseAsk): RouteReport => view.explain("alias", ask);
/** Where requests go that end at once. */
const sent = (asks: readonly LeaseAsk[]): string[] =>
  asks.map((ask) => {
    const place = lease(ask);
    place.done("ok");
    return place.worker.id;
  });

describe("a prompt", () => {
  test("goes where its beginning went before, and only the rest counts as queued there", () => {
    const [one, two] = [worker("one"), worker("two")];
    serve(one, two);
    const first = lease(prompt(1));
    expect([first.choice.branch, first.choice.predictedTokens]).toEqual(["miss", 0]);
    expect(board.queuedTokens(first.worker.slot)).toBe(1600);
    first.begun();
    first.done("ok");
    const longer = lease({
      route: { tokenIds: Uint32Array.from({ length: 2000 }, (_, i) => 1_000_003 + i), tokens: 2000 },
    });
    expect(longer.worker.id).toBe(first.worker.id);
    expect(longer.choice).toMatchObject({ policy: "cache_aware", predictedTokens: 1600, isExact: false });
    expect(board.queuedTokens(longer.worker.slot)).toBe(400);
    longer.done("failure");
    expect([board.bookings(), board.queuedTokens(one.slot), board.queuedTokens(two.slot)]).toEqual([0, 0, 0]);
  });

  test("goes where its beginning went while nobody else was there", () => {
    const [one, two] = [worker("one"), worker("two")];
    serve(one, two);
    board.setState(two.slot, WorkerState.unhealthy);
    sent([prompt(1), prompt(2), prompt(1)]);
    expect(chosen.map(({ choice }) => [choice.branch, choice.predictedTokens])).toEqual([
      ["only", 0],
      ["only", 0],
      ["only", 1584],
    ]);
    board.setState(two.slot, WorkerState.ready);
    expect(sent([prompt(1), prompt(2)])).toEqual(["one", "one"]);
  });

  test("goes where its beginning went while there was one worker only", async () => {
    const one = worker("one");
    serve(one);
    sent([prompt(1), prompt(2), prompt(1, 3200)]);
    expect(explain(prompt(1)).candidates[0]!.matchedTokens).toBe(0); // there was no choice, so nothing was written
    serve(one, worker("two"));
    explain(prompt(3));
    for (let i = 0; i < 3; i++) await new Promise(setImmediate);
    const { chosen: id, branch, candidates } = explain(prompt(1, 3200));
    expect([id, branch, candidates[0]!.matchedTokens]).toEqual(["one", "hit", 3184]);
    expect(explain(prompt(2)).candidates.map(({ matchedTokens }) => matchedTokens)).toEqual([1584, 0]);
    // another engine at its place holds nothing of it
    open();
    serve(worker("one"));
    sent([prompt(4)]);
    worker("gone");
    serve(worker("one"), worker("two"));
    for (let i = 0; i < 3; i++) await new Promise(setImmediate);
    expect(explain(prompt(4)).candidates.map(({ matchedTokens }) => matchedTokens)).toEqual([0, 0]);
  });

  test("that workers say they hold is known to be there", () => {
    const [one, two] = [worker("one", { sendsEvents: true }), worker("two", { sendsEvents: true })];
    serve(one, two);
    const { tokenIds } = prompt(1).route!;
    new TestCaches(writer).tell(chainOf(chainRoot("m", 16), tokenIds!, 16), two.member!);
    const place = lease(prompt(1));
    expect(place.worker.id).toBe("two");
    // the last token is always computed, and so is its block
    expect(place.choice).toMatchObject({ branch: "hit", predictedTokens: 1584, isExact: true, promptTokens: 1600 });
  });

  test("is found at each worker under the name that its cache has for the model", () => {
    const [plain, aliased, tuned] = [
      worker("plain"),
      worker("aliased", { cacheName: { model: "base" } }),
      worker("tuned", { cacheName: { model: "base", lora: "m" } }),
    ];
    serve(plain, aliased, tuned);
    const tell = ({ member }: WorkerEntry, seed: number, blocks: number, model: string, lora?: string) => {
      const ids = Uint32Array.from({ length: blocks * 16 }, (_, i) => seed * 1_000_003 + i);
      new TestCaches(writer).tell(chainOf(chainRoot(model, 16, lora), ids, 16), member!);
    };
    const matched = (seed: number) => explain(prompt(seed)).candidates.map(({ matchedTokens }) => matchedTokens);
    tell(plain, 1, 50, "m");
    tell(aliased, 1, 60, "base");
    tell(tuned, 1, 70, "base", "m");
    expect(matched(1)).toEqual([800, 960, 1120]);
    tell(aliased, 2, 50, "m");
    tell(tuned, 2, 50, "base");
    expect(matched(2)).toEqual([0, 0, 0]);
    // what is sent there is written under that name, too
    for (const [seed, id] of ["plain", "aliased", "tuned", "plain"].entries()) {
      sent([{ route: { ...prompt(10 + seed).route!, target: id } }]);
      const found = explain(prompt(10 + seed)).candidates.filter(({ matchedTokens }) => matchedTokens === 1584);
      expect(found.map((candidate) => candidate.id)).toEqual([id]);
    }
  });

  test("of which nothing is known goes to everyone in turn while nobody has anything to do", () => {
    serve(worker("one"), worker("two"), worker("three"));
    const ids = sent(Array.from({ length: 30 }, (_, i) => prompt(i)));
    const counts = Object.values(Object.groupBy(ids, (id) => id)).map((its) => its!.length);
    expect(counts).toEqual([10, 10, 10]);
  });

  test("leaves its trace, and what the engine says was cached is counted once", () => {
    serve(worker("one"), worker("two"));
    const trace: RouteTrace = {};
    const first = lease({ ...prompt(1), trace });
    first.cached(32, 1601);
    first.cached(7);
    first.done("ok");
    lease({ ...prompt(1), trace }).done("ok");
    expect(trace).toEqual({ worker: first.worker.id, predictedTokens: 1584, cachedTokens: 32 });
    expect(cached).toEqual([[0, 32, 1601]]);
  });
});

describe("policies", () => {
  const KEYED: readonly PolicyName[] = ["cache_aware", "prefix_hash", "consistent_hashing", "manual"];

  test.each(POLICY_NAMES)("%s: the explanation is what the next request does, and changes nothing", (policy) => {
    open(policy);
    const workers = [worker("one"), worker("two"), worker("three")];
    serve(...workers);
    const counted = () => [chosen.length, branches.length, board.bookings()];
    const random = Math.random;
    Math.random = () => 0.4;
    try {
      for (let i = 0; i < 12; i++) {
        const ask = prompt(i % 4);
        const route = { ...ask.route!, sessionKey: `session ${i % 4}` };
        const before = counted();
        const reports = [explain({ route }), explain({ route })];
        expect(counted()).toEqual(before);
        expect(reports[1]).toEqual(reports[0]!);
        const [report] = reports;
        const place = lease({ route });
        expect([report!.chosen, report!.branch]).toEqual([place.worker.id, place.choice.branch as never]);
        expect(report!.candidates.map(({ id, state, excluded }) => [id, state, excluded])).toEqual(
          workers.map(({ id }) => [id, "ready", undefined]),
        );
        place.done("ok");
      }
    } finally {
      Math.random = random;
    }
    expect(new Set(chosen.map(({ choice }) => choice.policy))).toEqual(new Set([policy]));
  });

  test.each(KEYED)("%s keeps together what belongs together", (policy) => {
    open(policy);
    serve(worker("one"), worker("two"), worker("three"), worker("four"));
    const asks = Array.from({ length: 24 }, (_, i) => ({
      route: { ...prompt(i % 6).route!, sessionKey: `session ${i % 6}` },
    }));
    const ids = sent(asks);
    for (const [i, id] of ids.entries()) expect(id).toBe(ids[i % 6]!);
    expect(new Set(ids).size).toBeGreaterThan(1);
  });

  test("are those of a model's workers where a label says so, and each part of the work has its own", () => {
    open("round_robin");
    serve(
      worker("one"),
      worker("two", { labels: { policy: "passthrough" } }),
      worker("x", { labels: { policy: "?" } }),
    );
    expect(sent([1, 2, 3, 4].map((i) => prompt(i)))).toEqual(["one", "one", "one", "one"]);
    open("cache_aware", "round_robin");
    serve(
      ...["p", "q"].map((id) => worker(id, { role: "prefill" })),
      worker("d", { role: "decode" }),
      worker("e", { role: "decode" }),
    );
    const pairs = [1, 1, 1].map((seed) => view.leasePair(view.model("m"), prompt(seed)));
    expect(pairs.map(({ prefill, decode }) => [prefill.choice.policy, decode.choice.policy])).toEqual(
      pairs.map(() => ["cache_aware", "round_robin"]),
    );
    expect(new Set(pairs.map(({ prefill }) => prefill.worker.id)).size).toBe(1);
    expect(pairs.map(({ decode }) => decode.worker.id)).toEqual(["d", "e", "d"]);
  });

  test("count their branches under SMG's names", () => {
    open("manual");
    serve(worker("one"), worker("two"));
    sent([{}, { route: { tokens: 1, routingKey: "k" } }, { route: { tokens: 1, routingKey: "k" } }]);
    expect(branches).toEqual(["no_routing_id", "vacant", "occupied_hit"]);
  });
});

describe("a client's word", () => {
  test("names the worker: by its id, its URL, or its number", () => {
    serve(worker("one"), worker("two"));
    const to = (target: string) => lease({ route: { tokens: 1, target } }).worker.id;
    expect([to("two"), to("grpc://two:1"), to("1"), to("0")]).toEqual(["two", "two", "two", "one"]);
    expect(() => to("nobody")).toThrow(TargetWorkerError);
    expect(() => explain({ route: { tokens: 1, target: "nobody" } })).toThrow(TargetWorkerError);
  });

  test("holds where others are to be tried behind their circuit breakers, or went unreached a moment ago", () => {
    const [one, two, bad] = [worker("one"), worker("two"), worker("bad")];
    serve(one, two, bad);
    const to = (target: string): LeaseAsk => ({ route: { tokens: 1, target } });
    const fail = (at: number) => board.breaker.count(bad.slot, 0, true, false, at);
    fail(view.clock.now() - 61_000); // its breaker is half open: any request might try it
    expect([explain(to("two")).chosen, ...sent([to("two"), to("1")])]).toEqual(["two", "two", "two"]);
    expect(() => lease(to("nobody"))).toThrow(TargetWorkerError);
    expect([explain(to("bad")).branch, lease(to("bad"))]).toMatchObject(["probe", { isProbe: true, worker: bad }]);
    expect(() => lease(to("bad"))).toThrow(TargetWorkerError); // it is being tried
    expect(explain(to("bad")).candidates.map((its) => its.excluded)).toEqual([
      "another worker is named",
      "another worker is named",
      "breaker half-open",
    ]);
    board.avoid(one.slot, 10_000, view.clock.now());
    expect(sent([to("one"), to("two")])).toEqual(["one", "two"]);
  });

  test("of one half of a pair leaves the other half to whom it can be left", () => {
    const [p, bad, d] = [
      worker("p", { role: "prefill" }),
      worker("bad", { role: "prefill" }),
      worker("d", { role: "decode" }),
    ];
    serve(p, bad, d);
    for (const { slot } of [bad, d]) board.breaker.count(slot, 0, true, false, view.clock.now() - 61_000);
    const pair = view.leasePair(view.model("m"), { route: { tokens: 1, target: "p" } });
    expect([pair.prefill.worker.id, pair.decode.worker.id, pair.decode.isProbe]).toEqual(["p", "d", true]);
  });

  test("or the rank", () => {
    const first = worker("w", { rank: 0 });
    const ranks = [first, worker("w@1", { rank: 1, home: first.slot }), worker("w@2", { rank: 2, home: first.slot })];
    serve(...ranks.map((entry) => ({ ...entry, url: first.url, home: first.slot })));
    expect([1, 2, 1].map((rank) => lease({ ...prompt(1), rank }).worker.rank)).toEqual([1, 2, 1]);
    expect(() => lease({ rank: 3 })).toThrow(NoWorkersError);
    const to = (target: string) => lease({ route: { tokens: 1, target } }).worker.rank;
    expect([to("w@2"), to("grpc://w:1@1"), to("grpc://w:1/")]).toEqual([2, 1, 0]);
  });

  test.each(["consistent_hashing", "prefix_hash", "cache_aware"] as const)(
    "that is a key spreads over ranks: %s",
    (policy) => {
      open(policy);
      const first = worker("w", { rank: 0 });
      const ranks = [1, 2, 3].map((rank) => worker(`w@${rank}`, { rank, url: first.url }));
      serve(...[first, ...ranks].map((entry) => ({ ...entry, home: first.slot })));
      const asks = Array.from({ length: 64 }, (_, i) => ({
        route: { ...prompt(i, 320).route!, sessionKey: `key ${i}` },
      }));
      const went = sent(asks);
      expect(new Set(went).size).toBe(4);
      expect(sent(asks)).toEqual(went);
    },
  );
});

describe("ranks of a worker that failed", () => {
  test("are not asked either", () => {
    const [first, other] = [worker("w"), worker("other")];
    const ranks = [{ ...first, rank: 0, home: first.slot }, worker("w@1", { rank: 1, home: first.slot })];
    serve(...ranks, other);
    expect(lease({ tried: new Set([first.slot]) }).worker.id).toBe("other");
  });
});

describe("only a worker that runs nothing", () => {
  test("is asked beside a slow one, however much another has of the prompt", () => {
    serve(worker("one"), worker("two"));
    const first = lease(prompt(1));
    const second = view.leaseIdle(view.model("m"), prompt(1));
    expect(second.worker.id).not.toBe(first.worker.id);
    expect(() => view.leaseIdle(view.model("m"), prompt(1))).toThrow(NoWorkersError);
  });
});

describe("the worker that decodes", () => {
  test("is of the same zone as the one that prefills, if it has as little to do", () => {
    const zone = (id: string, role: WorkerEntry["role"], name: string) => worker(id, { role, labels: { zone: name } });
    const near = zone("near", "decode", "a");
    serve(zone("p", "prefill", "a"), zone("far", "decode", "b"), near, zone("farther", "decode", "c"));
    for (let i = 0; i < 6; i++) {
      const { prefill, decode } = view.leasePair(view.model("m"), prompt(i));
      expect(decode.worker.id).toBe("near");
      prefill.done("ok");
      decode.done("ok");
    }
    board.book(near.slot, 0);
    expect(view.leasePair(view.model("m"), prompt(9)).decode.worker.id).not.toBe("near");
  });
});

describe("an explanation", () => {
  test("says why workers are not chosen from", () => {
    const facts = (features: number): EngineFacts => ({
      dialect: "scripted",
      protocol: "",
      features,
      vocabSize: 0,
      contextLength: 0,
      maxLogprobs: 0,
      dataParallelSize: 1,
      maxRunningRequests: 0,
      blockSize: 16,
      role: "regular",
      waitsForReasoning: undefined,
      labels: {},
    });
    const needs = Feature.generate | Feature.seed;
    const good = worker("good", { facts: facts(needs) });
    const other = worker("other", { facts: facts(needs) });
    const plain = worker("plain", { facts: facts(Feature.generate) });
    const draining = worker("draining", { facts: facts(needs) });
    const broken = worker("broken");
    const tried = worker("tried");
    const away = worker("away");
    board.setState(draining.slot, WorkerState.draining);
    board.breaker.count(broken.slot, 0, true, false, view.clock.now());
    board.avoid(away.slot, 10_000, view.clock.now());
    serve(good, other, plain, draining, broken, tried, away);
    const ask = { ...prompt(1), needs, tried: new Set([tried.slot]) };
    const { candidates, chosen: id, branch, decode } = explain(ask);
    expect(candidates.map((its) => [its.id, its.excluded])).toEqual([
      ["good", undefined],
      ["other", undefined],
      ["plain", "lacks seed"],
      ["draining", "draining"],
      ["broken", "breaker open"],
      ["tried", "tried"],
      ["away", "could not be reached a moment ago"],
    ]);
    expect(candidates.find((its) => its.id === "draining")?.state).toBe("draining");
    expect([["good", "other"].includes(id), branch, decode]).toEqual([true, "miss", undefined]);
  });

  test("shows the blocks, who has them, and who is only thought to", () => {
    const [one, two] = [worker("one", { sendsEvents: true }), worker("two")];
    serve(one, two);
    const { tokenIds } = prompt(1, 320).route!;
    new TestCaches(writer).tell(chainOf(chainRoot("m", 16), tokenIds!, 16), one.member!, 0, 5);
    lease({ route: { tokenIds: tokenIds!.subarray(0, 160), tokens: 160, target: "two" } });
    expect(explain(prompt(1, 320))).toMatchObject({
      model: "m",
      policy: "cache_aware",
      tokens: 320,
      blockSize: 16,
      blocks: 20,
      spans: [
        { fromBlock: 0, toBlock: 5, exact: ["one"], guessed: ["two"] },
        { fromBlock: 5, toBlock: 10, exact: [], guessed: ["two"] },
      ],
      candidates: [
        { id: "one", matchedTokens: 80, isExact: true, running: 0, queuedTokens: 0 },
        { id: "two", matchedTokens: 160, isExact: false, running: 1, queuedTokens: 160 },
      ],
    });
  });

  test("shows a stretch that all of its workers have in one piece, whoever of another model has a part of it", () => {
    const [one, other] = [worker("one"), worker("two", { model: "another" })];
    serve(one, worker("three"));
    const ids = prompt(1).route!.tokenIds!;
    const caches = new TestCaches(writer);
    const chain = chainOf(chainRoot("m", 16), ids, 16);
    caches.tell(chain, one.member!, 0, 60);
    caches.tell(chain, other.member!, 0, 30);
    expect(explain(prompt(1)).spans).toEqual([{ fromBlock: 0, toBlock: 60, exact: ["one"], guessed: [] }]);
  });

  test("of a half-open breaker tells of the try, and does not make it", () => {
    const [bad, good] = [worker("bad"), worker("good")];
    serve(bad, good);
    board.breaker.count(bad.slot, 0, true, false, view.clock.now() - 61_000);
    const told = () => [explain(prompt(1)).chosen, explain(prompt(1)).branch];
    expect([told(), told()]).toEqual([
      ["bad", "probe"],
      ["bad", "probe"],
    ]);
    expect(lease(prompt(1))).toMatchObject({ isProbe: true, worker: bad });
    expect(told()).toEqual(["good", "only"]);
  });

  test("of a model that nobody can serve now says so; of one that is split tells of both workers", () => {
    const down = worker("down");
    board.setState(down.slot, WorkerState.unhealthy);
    serve(down);
    expect(explain(prompt(1))).toMatchObject({
      chosen: "",
      branch: "nobody",
      candidates: [{ id: "down", excluded: "unhealthy", matchedTokens: 0 }],
    });
    serve(worker("p", { role: "prefill" }), worker("d", { role: "decode" }), worker("e", { role: "decode" }));
    const report = explain(prompt(1));
    expect([report.chosen, report.candidates.length, report.decode?.candidates.length]).toEqual(["p", 1, 2]);
    const pair = view.leasePair(view.model("m"), prompt(1));
    expect([pair.prefill.worker.id, pair.decode.worker.id]).toEqual([report.chosen, report.decode!.chosen]);
  });
});

describe("the board", () => {
  test("remembers when a worker was last used, whichever thread did", () => {
    const two = FleetBoard.create(2);
    const slot = two.claim();
    const now = 1_800_000_000_123;
    expect(two.lastUsed(slot, now)).toBe(0);
    two.book(slot, 1, 0, now);
    expect([two.lastUsed(slot, now), two.lastUsed(slot, now + 5000)]).toEqual([now, now]);
    two.free(slot);
    expect(two.lastUsed(two.claim(), now)).toBe(0);
  });

  test("tells single numbers of a load while they are fresh", () => {
    const slot = board.claim();
    const now = 1_800_000_000_000;
    expect(board.kvUsage(slot, now, 60_000)).toBeUndefined();
    const load = { running: 1, waiting: 2, waitingTokens: 77, usedTokens: 5, capacityTokens: 10 };
    board.setLoad(slot, { ...load, tokenUsage: 0.5, throughput: undefined }, now);
    expect([board.waitingTokens(slot, now, 2000), board.kvUsage(slot, now, 2000)]).toEqual([77, 0.5]);
    expect(board.throughput(slot, now, 2000)).toBeUndefined();
    expect(board.waitingTokens(slot, now + 3000, 2000)).toBeUndefined();
  });

  test("tells at one go what it tells number by number", () => {
    const two = FleetBoard.create(2);
    const [slot, other] = [two.claim(), two.claim()];
    const now = 1_800_000_000_000;
    const load = new BoardLoad(two);
    const seat = new Seat(worker("w", { slot }), 16);
    const agree = () => {
      const figures = { running: 9, queuedTokens: 9, kvUsage: 9 };
      load.read(seat, figures);
      expect(figures.running).toBe(load.running(seat));
      expect(figures.queuedTokens).toBe(load.queuedTokens(seat));
      expect(figures.kvUsage).toBe(load.kvUsage(seat) ?? -1);
      return [figures.running, figures.queuedTokens, figures.kvUsage];
    };
    load.now = now;
    expect(agree()).toEqual([0, 0, -1]);
    two.book(slot, 0, 30, now);
    two.book(slot, 1, 40, now);
    two.book(other, 0, 500, now);
    expect(agree()).toEqual([2, 70, -1]);
    const told = { running: 1, waiting: 2, waitingTokens: 77, usedTokens: 5, capacityTokens: 10, throughput: 1 };
    two.setLoad(slot, { ...told, tokenUsage: 0.5 }, now);
    expect(agree()).toEqual([2, 77, 0.5]);
    load.now = now + 3000;
    expect(agree()).toEqual([2, 70, 0.5]);
    load.now = now + 61_000;
    expect(agree()).toEqual([2, 70, -1]);
    two.setLoad(slot, { ...told, waitingTokens: undefined, tokenUsage: undefined }, load.now);
    expect(agree()).toEqual([2, 70, -1]);
  });
});
