import { expect, test } from "bun:test";
import { policyOf } from "../../../../src/routing/policies/index.ts";
import { counts, idle, isFair, Surroundings, worker } from "./support.ts";

const policy = () => policyOf("consistent_hashing");

test("a key has one worker, whatever its load; keys spread evenly", () => {
  const around = new Surroundings(idle(8));
  const own = around.choose(policy(), { tokens: 10, routingKey: "k" });
  expect(own.branch).toBe("key");
  own.worker.running = 500;
  expect(around.choose(policy(), { tokens: 10, routingKey: "k" }).worker).toBe(own.worker);
  const of = (i: number) => around.choose(policy(), { tokens: 10, routingKey: `key-${i}` }).worker;
  expect(isFair(counts(around, of, 4000))).toBe(true);
});

test("the routing key, else the session's, else anyone", () => {
  const around = new Surroundings(idle(8));
  const its = policy();
  const of = (more: object) => around.choose(its, { tokens: 10, ...more }).worker.id;
  expect(of({ routingKey: "a", sessionKey: "b" })).toBe(of({ routingKey: "a" }));
  expect(of({ sessionKey: "b" })).toBe(of({ routingKey: "b" }));
  expect(isFair(counts(around, () => around.choose(its, { tokens: 10 }).worker, 2000))).toBe(true);
});

test("gateways agree, whatever the order and the ids of workers", () => {
  const one = new Surroundings(idle(8));
  const other = new Surroundings(
    idle(8)
      .reverse()
      .map((its) => ({ ...its, id: `x${its.id}`, slot: its.slot + 7 })),
  );
  for (let i = 0; i < 50; i++) {
    const ask = { tokens: 10, sessionKey: `${i}` };
    expect(one.choose(policy(), ask).worker.url).toBe(other.choose(policy(), ask).worker.url);
  }
});

test("who leaves moves no keys but its own, and those to all others", () => {
  const all = new Surroundings(idle(5));
  const fewer = new Surroundings(all.workers.slice(1));
  const moved = fewer.workers.map(() => 0);
  for (let i = 0; i < 2000; i++) {
    const ask = { tokens: 10, routingKey: `${i}` };
    const [before, after] = [all.choose(policy(), ask).worker, fewer.choose(policy(), ask).worker];
    if (before.id === "w0") moved[fewer.workers.indexOf(after)]!++;
    else expect(after).toBe(before);
  }
  expect(isFair(moved)).toBe(true);
});

test("keys, and what has none, go by cost", () => {
  const around = new Surroundings([worker(0), worker(1, { cost: 2 }), worker(2, { cost: 0.5 })]);
  const its = policy();
  const keyed = counts(around, (i) => around.choose(its, { tokens: 10, routingKey: `${i}` }).worker, 3500);
  expect(isFair(keyed, [2, 1, 4])).toBe(true);
  expect(
    isFair(
      counts(around, () => around.choose(its, { tokens: 10 }).worker, 3500),
      [2, 1, 4],
    ),
  ).toBe(true);
});

test("what decided is counted under SMG's names", () => {
  const around = new Surroundings(idle(3));
  const its = policy();
  around.choose(its, { tokens: 10 });
  around.choose(its, { tokens: 10, sessionKey: "a" });
  around.choose(its, { tokens: 10, sessionKey: "a", target: "w1" });
  expect(() => around.choose(its, { tokens: 10, target: "w7" })).toThrow();
  expect(around.counted).toEqual(["random_fallback", "routing_key_hit", "target_worker_hit", "target_worker_miss"]);
});
