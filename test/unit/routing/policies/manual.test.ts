import { describe, expect, test } from "bun:test";
import { policyOf } from "../../../../src/routing/policies/index.ts";
import { StickyBoard } from "../../../../src/threads/sticky-board.ts";
import { counts, idle, isFair, SETTINGS, Surroundings, worker, workers } from "./support.ts";

const policy = policyOf("manual");
const ask = (routingKey: string) => ({ tokens: 10, routingKey });

test("a key stays with its worker, whatever that has to do", () => {
  const around = new Surroundings(idle(4));
  const first = around.choose(policy, ask("a"));
  expect(first.branch).toBe("miss");
  first.worker.running = 100;
  for (let i = 0; i < 10; i++) {
    const { worker: its, branch } = around.choose(policy, ask("a"));
    expect([its, branch]).toEqual([first.worker, "key"]);
  }
  expect(around.choose(policy, { tokens: 10, sessionKey: "a" }).worker).toBe(first.worker);
  expect(around.counted.slice(0, 2)).toEqual(["vacant", "occupied_hit"]);
});

test("when it cannot be had another is assigned, and the first is remembered", () => {
  const around = new Surroundings(idle(3));
  const own = around.choose(policy, ask("a")).worker;
  const others = around.workers.filter((one) => one !== own);
  const stand = policy.choose(others, ask("a"), around.context).worker;
  expect(around.counted).toEqual(["vacant", "occupied_miss"]);
  // the one used last comes first, then the other
  expect(around.choose(policy, ask("a")).worker).toBe(stand);
  const back = around.workers.filter((one) => one !== stand);
  expect(policy.choose(back, ask("a"), around.context).worker).toBe(own);
});

test("a key that is idle for too long is assigned anew", () => {
  const around = new Surroundings(workers({}, { running: 5 }));
  around.settings = { ...SETTINGS, assignmentMode: "min_load", maxIdleMs: 1000 };
  expect(around.choose(policy, ask("a")).worker.id).toBe("w0");
  around.workers[0]!.running = 9;
  around.now += 1000;
  expect(around.choose(policy, ask("a")).worker.id).toBe("w0");
  around.now += 1001;
  expect(around.choose(policy, ask("a")).worker.id).toBe("w1");
});

test("explaining marks no use", () => {
  const around = new Surroundings(idle(2));
  around.settings = { ...SETTINGS, maxIdleMs: 1000 };
  const own = around.choose(policy, ask("a")).worker;
  around.now += 900;
  expect(around.choose(policy, ask("a"), true).worker).toBe(own);
  around.now += 200;
  expect(around.choose(policy, ask("a"), true).branch).toBe("miss");
});

test("models and parts of a request have keys of their own", () => {
  const around = new Surroundings(idle(2));
  for (const leg of ["regular", "prefill", "decode"] as const) {
    for (const model of ["one", "two"]) {
      around.leg = leg;
      around.model = model;
      expect(around.choose(policy, ask("a")).branch).toBe("miss");
    }
  }
  expect(around.sticky.size()).toBe(6);
});

test("a key stays when workers of a larger priority come", () => {
  const around = new Surroundings(idle(2));
  const own = around.choose(policy, ask("a")).worker;
  const more = [worker(2, { priority: 90 }), ...around.workers];
  const later = new Surroundings(more);
  expect(policy.choose(more, ask("a"), { ...later.context, sticky: around.sticky }).worker).toBe(own);
  expect(policy.choose(more, ask("b"), { ...later.context, sticky: around.sticky }).worker.id).toBe("w2");
});

describe("who gets a new key", () => {
  test("random: anyone, by cost", () => {
    const around = new Surroundings(workers({}, {}, { cost: 2 }));
    const got = counts(around, (i) => around.choose(policy, ask(`${i}`)).worker, 2500);
    expect(isFair(got, [2, 2, 1])).toBe(true);
  });

  test("min_load: the one with the fewest requests, by cost", () => {
    const around = new Surroundings(workers({ running: 3 }, { running: 2 }, { running: 1, cost: 2 }));
    around.settings = { ...SETTINGS, assignmentMode: "min_load" };
    expect(around.choose(policy, ask("a")).worker.id).toBe("w1");
    around.workers[2]!.running = 0;
    expect(around.choose(policy, ask("b")).worker.id).toBe("w2");
  });

  test("min_group: the one with the fewest keys, by cost", () => {
    const around = new Surroundings(workers({}, {}, { cost: 2 }));
    around.settings = { ...SETTINGS, assignmentMode: "min_group" };
    const got = counts(around, (i) => around.choose(policy, ask(`${i}`)).worker, 50);
    expect(got).toEqual([20, 20, 10]);
  });

  test("without a key: anyone, and nothing is remembered", () => {
    const around = new Surroundings(idle(4));
    expect(isFair(counts(around, () => around.choose(policy, { tokens: 1 }).worker, 2000))).toBe(true);
    expect(around.sticky.size()).toBe(0);
    expect(new Set(around.counted)).toEqual(new Set(["no_routing_id"]));
  });
});

test("with the table that threads share", () => {
  const around = new Surroundings(idle(6));
  const context = { ...around.context, sticky: StickyBoard.create() };
  const first = Array.from({ length: 40 }, (_, i) => policy.choose(around.workers, ask(`${i}`), context).worker);
  expect(new Set(first).size).toBeGreaterThan(3);
  const thread = policyOf("manual");
  first.forEach((own, i) => {
    expect(thread.choose(around.workers, ask(`${i}`), context).worker).toBe(own);
  });
});
