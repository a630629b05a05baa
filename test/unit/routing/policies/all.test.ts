import { describe, expect, test } from "bun:test";
import { POLICY_NAMES } from "../../../../src/config/policy-names.ts";
import { TargetWorkerError } from "../../../../src/errors.ts";
import { policyOf } from "../../../../src/routing/policies/index.ts";
import type { PolicyName } from "../../../../src/routing/policy.ts";
import { random } from "../../generation/random.ts";
import { idle, ids, prompt, Surroundings, worker, workers } from "./support.ts";

/** They look at loads and keys, so that every one of ten choices tells something. */
const ASKS = Array.from({ length: 10 }, (_, i) => prompt(ids(200 + 40 * i, i), { routingKey: `key-${i % 4}` }));

test("every policy has its name", () => {
  for (const name of POLICY_NAMES) expect(policyOf(name).name).toBe(name);
  expect(policyOf("manual")).not.toBe(policyOf("manual"));
});

test("only those that go by tokens need them", () => {
  expect(POLICY_NAMES.filter((name) => policyOf(name).needsTokens)).toEqual(["cache_aware", "prefix_hash"]);
});

describe.each(POLICY_NAMES)("%s", (name: PolicyName) => {
  test("the only candidate is chosen, without hashing", () => {
    const around = new Surroundings(idle(1));
    const { worker: its, branch, matchedTokens, chain } = around.choose(policyOf(name), ASKS[0]);
    expect([its.id, branch, matchedTokens, chain]).toEqual(["w0", "only", 0, undefined]);
  });

  test("a worker that the client names is chosen, by id, URL or number, however loaded", () => {
    const around = new Surroundings(workers({}, {}, { running: 1000, priority: 1 }));
    for (const target of ["w2", "grpc://10.0.0.2:9000", "grpc://10.0.0.2:9000/", " w2 ", "2"]) {
      const choice = around.choose(policyOf(name), { tokens: 10, target });
      expect([choice.worker.id, choice.branch]).toEqual(["w2", "target"]);
    }
  });

  test("an id of digits comes before a number", () => {
    const around = new Surroundings(workers({}, {}, { id: "0" }));
    expect(around.choose(policyOf(name), { tokens: 10, target: "0" }).worker.member).toBe(2);
  });

  test.each(["w3", "3", "-1", "1.0", "", "grpc://10.0.0.3:9000"])("nobody is chosen for the target '%s'", (target) => {
    const around = new Surroundings(idle(3));
    expect(() => around.choose(policyOf(name), { tokens: 10, target })).toThrow(TargetWorkerError);
    // the other part's worker may be meant
    around.leg = "prefill";
    expect(around.choose(policyOf(name), { tokens: 10, target }).branch).not.toBe("target");
  });

  test("larger priorities are used first, the next when all of those are saturated", () => {
    const around = new Surroundings(
      workers({ priority: 1 }, { priority: 9, maxRunning: 4 }, { priority: 9 }, { priority: 5 }),
    );
    const [, first, second, third] = around.workers;
    const used = () => {
      const policy = policyOf(name);
      const keys = Array.from({ length: 40 }, (_, i) => ({ ...ASKS[i % 10]!, routingKey: `${around.now}-${i}` }));
      around.now++;
      return new Set(keys.map((ask) => around.choose(policy, ask).worker.priority));
    };
    expect([...used()]).toEqual([9]);
    first!.running = 4;
    expect([...used()]).toEqual([9]);
    second!.kv = 0.95;
    expect(used()).not.toContain(1);
    // who looks at loads leaves those that have too much to do
    if (name === "least_load" || name === "cache_aware") expect([...used()]).toEqual([5]);
    third!.kv = 0.97;
    if (name === "least_load" || name === "cache_aware") expect([...used()]).toEqual([1]);
    expect(used().size).toBeGreaterThan(0);
  });

  test("to explain a choice changes nothing, and tells of the next one", () => {
    const around = new Surroundings(workers({ running: 3 }, {}, { cost: 2 }, { kv: 0.5, queued: 300 }));
    const other = new Surroundings(around.workers);
    const policy = policyOf(name);
    const untold = policyOf(name);
    for (const ask of ASKS) {
      for (let i = 0; i < 3; i++) around.choose(policy, ask, true);
      const told = name === "random" || name === "power_of_two" ? undefined : around.choose(policy, ask, true);
      const seed = ask.tokens;
      const [one, two] = [around, other].map((where) => new Surroundings(where.workers, seed));
      const choice = policy.choose(around.workers, ask, { ...around.context, random: one!.context.random });
      const expected = untold.choose(other.workers, ask, { ...other.context, random: two!.context.random });
      expect(choice.worker.id).toBe(expected.worker.id);
      if (told !== undefined && name !== "manual")
        expect([told.worker.id, told.branch]).toEqual([choice.worker.id, choice.branch]);
    }
    expect(around.counted).toEqual(other.counted);
    expect(around.sticky).toEqual(other.sticky);
  });

  test("what is explained names every candidate, with its load and what it holds", () => {
    const around = new Surroundings(workers({ running: 3, queued: 70, kv: 0.25 }, { priority: 1 }, {}));
    const tokenIds = ids(200);
    around.hold(around.workers[0]!, tokenIds, 160);
    around.hold(around.workers[1]!, tokenIds, 96, false);
    const { scores, chain, match } = around.choose(policyOf(name), prompt(tokenIds), true);
    expect(scores?.map(({ score: _, ...rest }) => rest)).toEqual([
      { id: "w0", matchedTokens: 160, isExact: true, queuedTokens: 70, running: 3, kvUsage: 0.25 },
      { id: "w1", matchedTokens: 96, isExact: false, queuedTokens: 0, running: 0, kvUsage: undefined },
      { id: "w2", matchedTokens: 0, isExact: false, queuedTokens: 0, running: 0, kvUsage: undefined },
    ]);
    const isScored = name === "cache_aware" || name === "least_load";
    expect(scores?.map(({ score }) => score !== undefined)).toEqual([isScored, false, isScored]);
    expect(chain?.count).toBe(12);
    expect(match?.depth(0)).toBe(10);
  });

  test("a target and a single candidate are explained as they are chosen", () => {
    const around = new Surroundings(idle(3));
    const named = around.choose(policyOf(name), { tokens: 10, target: "w1" }, true);
    expect([named.worker.id, named.branch, named.scores?.length]).toEqual(["w1", "target", 3]);
    const single = new Surroundings(idle(1)).choose(policyOf(name), { tokens: 10 }, true);
    expect([single.branch, single.scores?.length]).toEqual(["only", 1]);
    expect(() => around.choose(policyOf(name), { tokens: 10, target: "w9" }, true)).toThrow(TargetWorkerError);
    expect(around.counted).toEqual([]);
  });

  test("a worker without a number in the index can be chosen", () => {
    const around = new Surroundings([worker(0, { member: -1 }), worker(1, { member: -1 })]);
    for (const ask of ASKS) {
      const { worker: its, matchedTokens } = around.choose(policyOf(name), ask);
      expect(around.workers).toContain(its);
      expect(matchedTokens).toBe(0);
    }
    expect(around.sticky.size()).toBe(0);
  });

  test("the same surroundings give the same choices", () => {
    const choices = () => {
      const { below } = random(3);
      const around = new Surroundings(idle(6), 11);
      const policy = policyOf(name);
      return Array.from({ length: 60 }, () => around.send(policy, ASKS[below(ASKS.length)]!).id);
    };
    expect(choices()).toEqual(choices());
  });

  test("more candidates than there was room for at first", () => {
    const around = new Surroundings(idle(150));
    const policy = policyOf(name);
    for (const ask of ASKS) expect(around.workers).toContain(around.send(policy, ask));
  });
});
