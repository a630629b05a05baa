import { expect, test } from "bun:test";
import { policyOf } from "../../../../src/routing/policies/index.ts";
import { counts, idle, ids, isFair, prompt, SETTINGS, Surroundings, worker } from "./support.ts";

const policy = () => policyOf("prefix_hash");

test("prompts that begin alike go to one worker, others spread evenly", () => {
  const around = new Surroundings(idle(8));
  const head = ids(256);
  const first = around.choose(policy(), prompt(Uint32Array.from([...head, ...ids(50, 2)])));
  expect(first.branch).toBe("key");
  for (let i = 0; i < 20; i++)
    expect(around.choose(policy(), prompt(Uint32Array.from([...head, ...ids(80, i)]))).worker).toBe(first.worker);
  expect(isFair(counts(around, (i) => around.choose(policy(), prompt(ids(300, i))).worker, 4000))).toBe(true);
});

test("so many tokens decide as the settings say", () => {
  const around = new Surroundings(idle(64));
  const chosen = (length: number) => {
    const head = ids(length);
    const got = Array.from(
      { length: 12 },
      (_, i) => around.choose(policy(), prompt(Uint32Array.from([...head, i]))).worker,
    );
    return new Set(got).size;
  };
  expect(chosen(256)).toBe(1);
  expect(chosen(255)).toBeGreaterThan(6);
  around.settings = { ...SETTINGS, prefixTokenCount: 10 };
  expect(chosen(10)).toBe(1);
  expect(chosen(9)).toBeGreaterThan(6);
});

test("adapters have prefixes of their own", () => {
  const around = new Surroundings(idle(64));
  const of = (lora?: string) => around.choose(policy(), prompt(ids(300), { lora })).worker.id;
  expect(new Set([of(), of("a"), of("b")]).size).toBe(3);
});

test("who leaves or joins moves no keys but its own", () => {
  const all = new Surroundings(idle(9));
  const fewer = new Surroundings(all.workers.slice(0, 8));
  let moved = 0;
  for (let i = 0; i < 900; i++) {
    const its = all.choose(policy(), prompt(ids(20, i))).worker;
    if (its.id === "w8") moved++;
    else expect(fewer.choose(policy(), prompt(ids(20, i))).worker).toBe(its);
  }
  expect(isFair([moved, 900 - moved], [1, 8])).toBe(true);
});

test("above its share of the load times the factor, the next worker of the key is taken", () => {
  const around = new Surroundings(idle(4));
  const ask = prompt(ids(300));
  const own = around.choose(policy(), ask).worker;
  for (const one of around.workers) one.running = 8;
  // 33 requests, a mean of 8.25, times 1.25 = 10.3: an eleventh may come
  own.running = 8;
  expect(around.choose(policy(), ask).worker).toBe(own);
  own.running = 12;
  const next = around.choose(policy(), ask);
  expect(next.branch).toBe("balance");
  expect(next.worker).not.toBe(own);
  around.settings = { ...SETTINGS, prefixHashLoadFactor: 2 };
  expect(around.choose(policy(), ask).worker).toBe(own);
  expect(around.counted).toEqual(["ring_hit", "ring_hit", "load_balance_walk", "ring_hit"]);
});

test("one prefix without end stays within the bound", () => {
  const around = new Surroundings(idle(4));
  const its = policy();
  const got = counts(around, () => around.send(its, prompt(ids(300))), 400);
  expect(Math.max(...got)).toBeLessThanOrEqual(126);
});

test("without tokens: by the routing key, then the session's, then the least loaded", () => {
  const around = new Surroundings(idle(16));
  const its = policy();
  const of = (more: object) => around.choose(its, { tokens: 50, ...more }).worker.id;
  expect(of({ routingKey: "a", sessionKey: "b" })).toBe(of({ routingKey: "a" }));
  expect(of({ sessionKey: "b" })).toBe(of({ routingKey: "b" }));
  expect(of({ tokenIds: new Uint32Array(0), routingKey: "a" })).toBe(of({ routingKey: "a" }));
  for (const one of around.workers) one.running = one.member === 11 ? 1 : 2;
  expect(of({})).toBe("w11");
  expect(around.counted.at(-1)).toBe("no_tokens");
});

test("a worker of twice the cost gets half the keys, and half the load", () => {
  const around = new Surroundings([worker(0), worker(1, { cost: 2 })]);
  around.settings = { ...SETTINGS, prefixHashLoadFactor: 100 };
  const its = policy();
  expect(
    isFair(
      counts(around, (i) => around.choose(its, prompt(ids(20, i))).worker, 3000),
      [2, 1],
    ),
  ).toBe(true);
  around.settings = { ...SETTINGS, prefixHashLoadFactor: 1 };
  const got = counts(around, () => around.send(its, prompt(ids(300))), 300);
  expect(Math.abs(got[0]! - 200)).toBeLessThanOrEqual(1);
});
