import { expect, test } from "bun:test";
import { policyOf } from "../../../../src/routing/policies/index.ts";
import { counts, idle, isFair, Surroundings, type Worker, worker, workers } from "./support.ts";

const CASES: readonly (readonly [title: string, workers: readonly Partial<Worker>[], chosen: string])[] = [
  [
    "less KV cache in use, where both tell",
    [
      { kv: 0.3, running: 1 },
      { kv: 0.2, running: 9 },
    ],
    "w1",
  ],
  ["fewer requests, where one does not tell", [{ kv: 0.1, running: 2 }, { running: 1 }], "w1"],
  [
    "fewer requests, where the caches are alike",
    [
      { kv: 0.5, running: 2 },
      { kv: 0.5, running: 1 },
    ],
    "w1",
  ],
  ["a lower cost", [{ cost: 2 }, {}], "w1"],
  ["fewer requests by the cost", [{ cost: 2, running: 1 }, { running: 4 }], "w0"],
  ["less of the cache by the cost", [{ cost: 2, kv: 0.2 }, { kv: 0.5 }], "w0"],
];

test.each([...CASES])("of two, the one with %s", (_, described, chosen) => {
  const around = new Surroundings(workers(...described));
  const policy = policyOf("power_of_two");
  for (let i = 0; i < 20; i++) expect(around.choose(policy).worker.id).toBe(chosen);
});

test("two different ones are drawn, every pair alike", () => {
  const around = new Surroundings(idle(6));
  // the order of loads tells the pair's winner: of 15 pairs, worker i wins against those after it
  around.workers.forEach((one, i) => {
    one.running = i;
  });
  const policy = policyOf("power_of_two");
  const got = counts(around, () => around.choose(policy).worker, 6000);
  expect(got.at(-1)).toBe(0);
  expect(isFair(got.slice(0, -1), [5, 4, 3, 2, 1])).toBe(true);
});

test("an idle fleet is used evenly", () => {
  const around = new Surroundings(idle(5));
  const policy = policyOf("power_of_two");
  expect(isFair(counts(around, () => around.choose(policy).worker, 4000))).toBe(true);
});

test("one that is left of several", () => {
  const around = new Surroundings([worker(0, { priority: 1 }), worker(1)]);
  expect(around.choose(policyOf("power_of_two")).worker.id).toBe("w1");
});
