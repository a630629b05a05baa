import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { EngineError } from "../../../src/engines/engine.ts";
import type { EngineFacts } from "../../../src/engines/facts.ts";
import { Feature } from "../../../src/engines/features.ts";
import type { HttpEngine } from "../../../src/engines/http/engine.ts";
import { ModelNotFoundError, NotOfferedError, NoWorkersError, UnsupportedError } from "../../../src/errors.ts";
import { UNOBSERVED } from "../../../src/fleet/dispatch/observer.ts";
import type { Lease } from "../../../src/fleet/lease.ts";
import type { FleetSnapshot, HttpModelEntry, WorkerEntry } from "../../../src/fleet/snapshot.ts";
import { FleetView } from "../../../src/fleet/view.ts";
import { ChatTemplateRefusal, type TemplateInput } from "../../../src/template/chat-template.ts";
import type { TemplateSource } from "../../../src/template/model-template.ts";
import { FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { IM_END } from "../generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../generation/scripted-engine.ts";
import { modelEntry } from "../server/gateway.ts";

let board: FleetBoard;
let view: FleetView;
let made: Map<string, ScriptedEngine[]>;

beforeEach(() => {
  board = FleetBoard.create(2);
  made = new Map();
  view = new FleetView(board, 1, ({ url }) => {
    const engine = new ScriptedEngine();
    made.set(url, [...(made.get(url) ?? []), engine]);
    return engine;
  });
});

function worker(id: string, model: string, state: number = WorkerState.ready): WorkerEntry {
  const slot = board.claim();
  board.setState(slot, state as 2);
  return { id, slot, url: `grpc://${id}`, dialect: "scripted", model };
}

const FACTS: EngineFacts = {
  dialect: "scripted",
  protocol: "newest",
  features: 0,
  vocabSize: 0,
  contextLength: 0,
  maxLogprobs: 0,
  dataParallelSize: 1,
  maxRunningRequests: 0,
  blockSize: 0,
  role: "regular",
  waitsForReasoning: undefined,
  labels: {},
};

const a = modelEntry({ id: "org/a", aliases: ["a", "default"] });
const b = modelEntry({ id: "b", aliases: [] });
const fleet = (workers: WorkerEntry[], models = [a, b]): FleetSnapshot => ({
  workers,
  expected: workers.length,
  models,
  tokenizers: [],
});

describe("models", () => {
  test("are found by id and alias, with their tokenizer and template", () => {
    view.apply(fleet([]));
    for (const name of ["org/a", "a", "default"]) {
      const model = view.model(name);
      expect(model.entry).toBe(a);
      expect(model.tokenizer.vocabSize).toBeGreaterThan(150_000);
      expect(model.eosTokenIds.has(IM_END)).toBe(true);
      expect(
        model.template?.().render({ messages: [{ role: "user", content: "x" }], addGenerationPrompt: true }),
      ).toContain("x");
    }
    expect(view.list()).toEqual([a, b]);
  });

  test("unknown names are refused, also those that every object has", () => {
    view.apply(fleet([]));
    for (const name of ["", "A", "org", "toString", "__proto__"])
      expect(() => view.model(name)).toThrow(ModelNotFoundError);
  });

  test("an alias never hides a model of that very name", () => {
    const claims = modelEntry({ id: "c", aliases: ["b"] });
    for (const models of [
      [claims, b],
      [b, claims],
    ]) {
      view.apply(fleet([], models));
      expect(view.model("b").entry.id).toBe("b");
      expect(view.model("c").entry.id).toBe("c");
    }
  });

  test("wait for reasoning where all of their workers say so", () => {
    const waits = (...said: (boolean | undefined)[]) => {
      const workers = said.map((waitsForReasoning, i) => ({ ...worker(`w${i}`, "b"), waitsForReasoning }));
      view.apply(fleet([worker("other", "org/a"), ...workers]));
      return view.model("b").waitsForReasoning;
    };
    expect([waits(true), waits(false), waits(undefined)]).toEqual([true, false, undefined]);
    expect([waits(true, true), waits(true, false), waits(true, undefined)]).toEqual([true, undefined, undefined]);
    expect(waits()).toBeUndefined();
  });

  test("a model without a template has none", () => {
    view.apply(fleet([], [modelEntry({ id: "base", template: undefined })]));
    expect(view.model("base").template).toBeUndefined();
  });
});

describe("leases", () => {
  test("book at the worker of this thread and are given back once", () => {
    const one = worker("one", "b");
    view.apply(fleet([one]));
    const first = view.lease(view.model("b"));
    const second = view.lease(view.model("b"));
    expect(first.worker).toBe(one);
    expect(first.engine).toBe(second.engine);
    expect(board.running(one.slot)).toBe(2);
    first.done("ok");
    first.done("ok");
    first.done("ok");
    expect(board.running(one.slot)).toBe(1);
    second.done("ok");
    expect(board.running(one.slot)).toBe(0);
  });

  test("go to the least loaded ready worker of the model, counting other threads' requests", () => {
    const [one, two, other] = [worker("one", "org/a"), worker("two", "org/a"), worker("other", "b")];
    view.apply(fleet([one, two, other]));
    for (let i = 0; i < 3; i++) board.book(one.slot, 0);
    const ids = Array.from({ length: 3 }, () => view.lease(view.model("a")).worker.id);
    expect(ids).toEqual(["two", "two", "two"]);
    board.book(two.slot, 0);
    expect(view.lease(view.model("default")).worker.id).toBe("one");
  });

  test("an idle fleet is used evenly", () => {
    const workers = ["one", "two", "three"].map((id) => worker(id, "b"));
    view.apply(fleet(workers));
    const counts = new Map<string, number>();
    for (let i = 0; i < 30; i++) {
      const lease = view.lease(view.model("b"));
      counts.set(lease.worker.id, (counts.get(lease.worker.id) ?? 0) + 1);
      lease.done("ok");
    }
    expect([...counts.values()]).toEqual([10, 10, 10]);
  });

  test("need a worker that is ready", () => {
    const states = [WorkerState.starting, WorkerState.unhealthy, WorkerState.draining, WorkerState.absent];
    const ready = worker("x", "org/a");
    const workers = states.map((state, i) => worker(`w${i}`, "b", state));
    view.apply(fleet([...workers, ready]));
    expect(() => view.lease(view.model("b"))).toThrow(NoWorkersError);
    expect([view.readyWorkers(), view.workerCount]).toEqual([1, 5]);
    board.setState(workers[1]?.slot ?? -1, WorkerState.ready);
    expect(view.lease(view.model("b")).worker.id).toBe("w1");
  });
});

describe("what a request needs", () => {
  const able = (id: string, features: number, state?: number): WorkerEntry => ({
    ...worker(id, "b", state),
    facts: { ...FACTS, features },
  });

  test("is looked for in what the workers told of themselves; those that told nothing are taken at their best", () => {
    const [plain, seeds] = [able("plain", Feature.generate), able("seeds", Feature.generate | Feature.seed)];
    view.apply(fleet([plain, seeds]));
    const needs = Feature.generate | Feature.seed;
    expect([1, 2, 3].map(() => view.lease(view.model("b"), { needs }).worker.id)).toEqual(["seeds", "seeds", "seeds"]);
    view.apply(fleet([plain, worker("silent", "b")]));
    expect(view.lease(view.model("b"), { needs }).worker.id).toBe("silent");
  });

  test("and no worker ever has is refused by name: what the one lacks that lacks least", () => {
    view.apply(fleet([able("one", Feature.generate), able("two", Feature.generate | Feature.regex)]));
    const lease = () => view.lease(view.model("b"), { needs: Feature.generate | Feature.regex | Feature.seed });
    expect(lease).toThrow(UnsupportedError);
    expect(lease).toThrow(expect.objectContaining({ param: "seed", message: expect.stringContaining("seed") }));
    const both = () => view.lease(view.model("b"), { needs: Feature.samples | Feature.seed });
    expect(both).toThrow(expect.objectContaining({ message: expect.stringContaining("n, seed") }));
    view.apply(fleet([able("embeds", Feature.embed)]));
    const text = () => view.lease(view.model("b"), { needs: Feature.generate });
    expect(text).toThrow(expect.objectContaining({ param: undefined, status: 400 }));
  });

  test("and only workers have that are down, or were tried, is unavailable", () => {
    const seeds = Feature.generate | Feature.seed;
    const [up, down] = [able("up", seeds), able("down", seeds | Feature.minP, WorkerState.unhealthy)];
    view.apply(fleet([up, down]));
    expect(() => view.lease(view.model("b"), { needs: Feature.minP })).toThrow(NoWorkersError);
    expect(() => view.lease(view.model("b"), { needs: seeds, tried: new Set([up.slot]) })).toThrow(NoWorkersError);
  });
});

describe("circuit breakers", () => {
  const RULES = { failures: 2, rate: 0.5, successes: 2, timeoutMs: 60_000, windowMs: 60_000 };
  let changes: string[];
  let now: number;
  let clock: ReturnType<typeof spyOn<DateConstructor, "now">>;

  beforeEach(() => {
    board = FleetBoard.create(2, RULES);
    changes = [];
    now = 1_700_000_000_000;
    clock = spyOn(Date, "now").mockImplementation(() => now);
    view = new FleetView(board, 0, () => new ScriptedEngine(), {
      observer: { ...UNOBSERVED, breaker: ({ id }, became) => changes.push(`${id} ${became}`) },
    });
  });
  afterEach(() => clock.mockRestore());

  const lease = (tried?: readonly number[]) => view.lease(view.model("b"), tried && { tried: new Set(tried) });
  const fail = (times: number) => {
    for (let i = 0; i < times; i++) lease().done("failure");
  };

  test("keep requests from a worker that fails", () => {
    const [bad, good] = [worker("bad", "b"), worker("good", "b")];
    view.apply(fleet([bad]));
    fail(2);
    view.apply(fleet([bad, good]));
    for (let i = 0; i < 4; i++) expect(lease().worker.id).toBe("good");
    expect(changes).toEqual(["bad open"]);
  });

  test("are not moved by what clients do wrong", () => {
    view.apply(fleet([worker("w", "b")]));
    for (let i = 0; i < 20; i++) lease().done("neutral");
    expect(lease().worker.id).toBe("w");
  });

  test("that are all open are a 503 that says when the first may be tried", () => {
    const workers = [worker("one", "b"), worker("two", "b")];
    view.apply(fleet(workers));
    fail(4);
    now += 20_500;
    expect(() => lease()).toThrow(NoWorkersError);
    expect(() => lease()).toThrow(expect.objectContaining({ status: 503, retryAfterSecs: 40 }));
  });

  test("let one request try the worker, whose first token lets the next one", () => {
    view.apply(fleet([worker("w", "b")]));
    fail(2);
    now += 60_000;
    const first = lease();
    expect(first.isProbe).toBe(true);
    expect(() => lease()).toThrow(expect.objectContaining({ status: 503, retryAfterSecs: 1 }));
    first.begun();
    const second = lease();
    expect(second.isProbe).toBe(true);
    second.done("ok");
    expect(changes).toEqual(["w open", "w closed"]);
    expect([lease(), lease()].map(({ isProbe }) => isProbe)).toEqual([false, false]);
    first.done("ok");
  });

  test("open again when the answer of a try breaks off", () => {
    view.apply(fleet([worker("w", "b")]));
    fail(2);
    now += 60_000;
    const first = lease();
    first.begun();
    first.done("failure");
    expect(() => lease()).toThrow(NoWorkersError);
    expect(changes).toEqual(["w open", "w open"]);
  });

  test("are tried first, but not with a request that has failed elsewhere", () => {
    const [bad, good, other] = [worker("bad", "b"), worker("good", "b"), worker("other", "b")];
    view.apply(fleet([bad]));
    fail(2);
    now += 60_000;
    view.apply(fleet([bad, good, other]));
    expect(lease([good.slot]).worker.id).toBe("other");
    expect(lease().worker.id).toBe("bad");
  });

  test("of a worker whose engine cannot be had stay as they are", () => {
    view.apply(fleet([worker("w", "b")]));
    fail(2);
    now += 60_000;
    const broken = new FleetView(board, 1, () => {
      throw new EngineError("unimplemented", "no");
    });
    broken.apply(fleet([{ id: "w", slot: 0, url: "grpc://w", dialect: "scripted", model: "b" }]));
    expect(() => broken.lease(broken.model("b"))).toThrow(EngineError);
    expect(lease().isProbe).toBe(true);
  });
});

describe("a lease", () => {
  test("counts as queued until its first token, and as running until it is done, once", () => {
    const one = worker("one", "b");
    view.apply(fleet([one]));
    const { slot } = one;
    const counts = () => [board.running(slot), board.begunCount(slot), board.queuedTokens(slot)];
    const [first, second] = [100, 50].map((tokens) => view.lease(view.model("b"), { tokens })) as [Lease, Lease];
    expect(counts()).toEqual([2, 0, 150]);
    first.begun();
    first.begun();
    expect(counts()).toEqual([2, 1, 50]);
    first.done("ok");
    second.done("failure");
    for (const lease of [first, second]) {
      lease.begun();
      lease.progress();
      lease.done("failure");
    }
    expect(counts()).toEqual([0, 0, 0]);
  });

  test("shows that the worker moves", async () => {
    const clock = new FakeClock();
    const moving = new FleetView(board, 1, () => new ScriptedEngine(), { clock });
    const one = worker("one", "b");
    moving.apply(fleet([one]));
    const lease = moving.lease(moving.model("b"));
    lease.begun();
    const silent = () => board.silentMs(one.slot, clock.now());
    await clock.pass(50_000);
    expect(silent()).toBeGreaterThan(49_000);
    lease.progress();
    await clock.pass(300);
    expect(silent()).toBeLessThan(300);
    lease.done("ok");
  });
});

describe("HTTP workers", () => {
  const httpModel = (id: string, aliases: string[] = []): HttpModelEntry => ({
    id,
    aliases,
    contextLength: 100,
    created: 1,
  });
  const http = (id: string, model: string): WorkerEntry => ({
    ...worker(id, model),
    url: `http://${id}`,
    dialect: "openai",
  });
  const withHttp = (workers: WorkerEntry[], httpModels: HttpModelEntry[], models = [a]): FleetSnapshot => ({
    ...fleet(workers, models),
    httpModels,
  });

  test("are another way to a model, or the only one", () => {
    view.apply(
      withHttp(
        [worker("w", "org/a"), http("h", "org/a"), http("o", "other")],
        [httpModel("org/a", ["h-alias"]), httpModel("other", ["o"])],
        [a, b],
      ),
    );
    const ways = ["org/a", "a", "h-alias", "b", "other", "o", "nobody", "toString"].map((name) => view.way(name));
    expect(ways).toEqual(["both", "both", "both", "tokens", "http", "http", undefined, undefined]);
    expect(view.listAll().map(({ id }) => id)).toEqual(["org/a", "b", "other"]);
    expect(view.list().map(({ id }) => id)).toEqual(["org/a", "b"]);
    expect(view.model("h-alias").entry).toBe(a);
    expect(() => view.model("o")).toThrow(NotOfferedError);
  });

  test("are leased by themselves, with engines of their own", () => {
    const closed: string[] = [];
    const engine = (url: string) => ({ url, close: () => closed.push(url) }) as Partial<HttpEngine> as HttpEngine;
    view = new FleetView(board, 1, () => new ScriptedEngine(), { createHttpEngine: ({ url }) => engine(url) });
    const [grpc, one, two] = [worker("w", "org/a"), http("one", "org/a"), http("two", "org/a")];
    view.apply(withHttp([grpc, one, two], [httpModel("org/a")]));
    const leases = ["a", "org/a"].map((name) => view.leaseHttp(name));
    expect(leases.map(({ engine: { url } }) => url).sort()).toEqual(["http://one", "http://two"]);
    expect(view.lease(view.model("a")).worker).toBe(grpc);
    expect(() => view.leaseHttp("a", { tried: new Set([one.slot, two.slot]) })).toThrow(NoWorkersError);
    for (const lease of leases) lease.done("ok");
    expect([board.running(one.slot), board.running(two.slot)]).toEqual([0, 0]);
    view.apply(withHttp([grpc, one], [httpModel("org/a")]));
    expect(closed).toEqual(["http://two"]);
  });

  test("have their prompts looked up where there is a choice, among those that prefill where the work is split", () => {
    const half = (id: string, role: "prefill" | "decode"): WorkerEntry => ({ ...http(id, "org/a"), role });
    const looksUp = (...workers: WorkerEntry[]) => {
      view.apply(withHttp([worker("w", "org/a"), ...workers], [httpModel("org/a")]));
      return view.routingTokenizer("a")?.tokenizer === view.model("a").tokenizer;
    };
    expect(looksUp(http("one", "org/a"), http("two", "org/a"))).toBe(true);
    expect(looksUp(http("one", "org/a"))).toBe(true); // there is one of the other kind
    expect(looksUp(half("one", "prefill"), half("two", "prefill"), half("three", "decode"))).toBe(true);
    const looksUpAlone = (...workers: WorkerEntry[]) => {
      view.apply(withHttp(workers, [httpModel("org/a")]));
      return view.routingTokenizer("a") !== undefined;
    };
    expect(looksUpAlone(http("one", "org/a"), http("two", "org/a"))).toBe(true);
    expect(looksUpAlone(http("one", "org/a"))).toBe(false);
    expect(looksUpAlone(half("one", "prefill"), half("two", "decode"), half("three", "decode"))).toBe(false);
  });

  test("need a model that they serve", () => {
    view.apply(withHttp([worker("w", "org/a")], []));
    expect(() => view.leaseHttp("a")).toThrow(NoWorkersError);
    expect(() => view.leaseHttp("nobody")).toThrow(ModelNotFoundError);
  });

  test("book nothing where they cannot be served", () => {
    const one = http("one", "x");
    view.apply(withHttp([one], [httpModel("x")]));
    expect(() => view.leaseHttp("x")).toThrow(EngineError);
    expect(board.running(one.slot)).toBe(0);
  });
});

describe("a new state of the fleet", () => {
  // other threads get a copy of every state, never the same objects
  test.each([
    ["the same objects", (state: FleetSnapshot) => state],
    ["a copy", (state: FleetSnapshot) => structuredClone(state)],
  ])("keeps tokenizers, templates and connections of what stays: %s", (_, sent) => {
    const [one, two] = [worker("one", "org/a"), worker("two", "org/a")];
    view.apply(sent(fleet([one])));
    const model = view.model("a");
    const lease = view.lease(model);
    view.apply(sent(fleet([one, two], [{ ...a, aliases: ["renamed"] }, b])));
    const again = view.model("renamed");
    expect(again.tokenizer).toBe(model.tokenizer);
    expect(again.template).toBe(model.template as NonNullable<typeof model.template>);
    expect(() => view.model("default")).toThrow(ModelNotFoundError);
    expect(made.get("grpc://one")?.length).toBe(1);
    expect(made.get("grpc://one")?.[0]?.closed).toBe(0);
    lease.done("ok");
    expect(board.running(one.slot)).toBe(0);
  });

  test("opens a model anew that was loaded anew", () => {
    view.apply(fleet([]));
    const old = view.model("a");
    const template = { source: "new", specials: {} };
    const tokenizer = { ...a.tokenizer };
    view.apply(fleet([], [{ ...a, tokenizer, created: a.created + 1, template, eosTokenIds: [7] }]));
    const model = view.model("a");
    expect(model.tokenizer).not.toBe(old.tokenizer);
    expect(model.template?.().render({ messages: [], addGenerationPrompt: true })).toBe("new");
    expect([...model.eosTokenIds]).toEqual([7]);
  });

  test("closes the connections of what left, once", () => {
    const [one, two] = [worker("one", "b"), worker("two", "b")];
    view.apply(fleet([one, two]));
    const leases = [view.lease(view.model("b")), view.lease(view.model("b"))];
    view.apply(fleet([two]));
    view.apply(fleet([two]));
    expect(made.get("grpc://one")?.[0]?.closed).toBe(1);
    expect(made.get("grpc://two")?.[0]?.closed).toBe(0);
    for (const lease of leases) lease.done("ok"); // a lease of a worker that left may still be given back
    expect([board.running(one.slot), board.running(two.slot)]).toEqual([0, 0]);
    view.close();
    view.close();
    expect([made.get("grpc://one")?.[0]?.closed, made.get("grpc://two")?.[0]?.closed]).toEqual([1, 1]);
  });

  test("a worker that comes back gets a new connection", () => {
    const one = worker("one", "b");
    view.apply(fleet([one]));
    view.lease(view.model("b")).done("ok");
    view.apply(fleet([]));
    view.apply(fleet([one]));
    view.lease(view.model("b")).done("ok");
    expect(made.get("grpc://one")?.map(({ closed }) => closed)).toEqual([1, 0]);
  });

  test("connections are made with the first lease only", () => {
    view.apply(fleet([worker("one", "b")]));
    expect(made.size).toBe(0);
  });
});

describe("a template that does not compile", () => {
  const loaded = (template: TemplateSource) => {
    const told: string[][] = [];
    const own = new FleetView(board, 0, () => new ScriptedEngine(), {
      onBrokenTemplate: (...what) => void told.push(what),
    });
    own.apply(fleet([], [modelEntry({ id: "served", aliases: ["s"], template })]));
    const render = (input: Partial<TemplateInput> = {}) =>
      own.model("s").template!().render({
        messages: [{ role: "user", content: "a" }],
        addGenerationPrompt: false,
        ...input,
      });
    return { told, render };
  };

  test("takes the model its chat, not its place: chats are refused with the reason, which is told once", () => {
    const { told, render } = loaded({ source: 'a\n{% if "\\" %}\n{% nonsense "}}" %}', specials: {} });
    expect(told).toEqual([]);
    const refused = /^The model cannot chat: the chat template does not compile, line \d: /;
    expect(() => render()).toThrow(refused);
    expect(() => render()).toThrow(ChatTemplateRefusal);
    expect(told).toEqual([["served", expect.stringMatching(/^the chat template does not compile, line \d: /)]]);
  });

  test("of several takes only its own", () => {
    const named = { default: "fine", tool_use: "{% if %}" };
    const { told, render } = loaded({ source: "fine", specials: {}, named });
    expect(render()).toBe("fine");
    expect(() => render({ tools: [] })).toThrow("the chat template 'tool_use' does not compile, line 1");
    expect(told).toHaveLength(1);
  });
});
