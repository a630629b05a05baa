import { expect, test } from "bun:test";
import { policyOf } from "../../../../src/routing/policies/index.ts";
import { DECODE_TOKENS } from "../../../../src/routing/score.ts";
import { counts, idle, SETTINGS, Surroundings, type Worker, worker, workers } from "./support.ts";

const CASES: readonly (readonly [title: string, workers: readonly Partial<Worker>[], chosen: string])[] = [
  ["the fewest tokens wait", [{ queued: 300 }, { queued: 100 }, { queued: 200 }], "w1"],
  ["the fewest run", [{ running: 3 }, { running: 2 }, { running: 1 }], "w2"],
  ["both count", [{ running: 1, queued: DECODE_TOKENS + 1 }, { running: 2 }], "w1"],
  ["the cache is emptier by tenths", [{ kv: 0.39 }, { kv: 0.2 }, { kv: 0.31 }], "w1"],
  [
    "a little more of the cache in use is none",
    [
      { kv: 0.39, usedAt: 5 },
      { kv: 0.3, usedAt: 9 },
    ],
    "w0",
  ],
  [
    "its batch has room",
    [
      { running: 2, maxRunning: 2 },
      { running: 4, maxRunning: 8 },
    ],
    "w1",
  ],
  ["it is cheaper", [{ cost: 2 }, {}], "w1"],
  ["it is dearer but has less to do by its cost", [{ cost: 2 }, { queued: 2000 }], "w0"],
  ["it was used least recently", [{ usedAt: 9 }, { usedAt: 3 }, { usedAt: 5 }], "w1"],
];

test.each([...CASES])("chosen since %s", (_, described, chosen) => {
  const around = new Surroundings(workers(...described));
  for (let turn = 0; turn < 3; turn++) {
    const policy = policyOf("least_load");
    for (let i = 0; i < turn; i++) around.choose(policy);
    expect(around.choose(policy).worker.id).toBe(chosen);
  }
});

test("the seconds of work, by SMG's formula and parameters", () => {
  const around = new Surroundings(
    workers({ queued: 500, running: 2, kv: 0.5 }, { throughput: 1000 }, { throughput: 4000 }),
  );
  const scores = () => around.choose(policyOf("least_load"), { tokens: 100 }, true).scores?.map(({ score }) => score);
  const work = [600 + 3 * DECODE_TOKENS, 100 + DECODE_TOKENS, 100 + DECODE_TOKENS];
  // the fleet's best throughput stands for all
  expect(scores()).toEqual([work[0]! / 4000 + 0.15, work[1]! / 4000, work[2]! / 4000]);
  for (const one of around.workers) one.throughput = undefined;
  around.settings = { ...SETTINGS, kvPressureWeight: 1, defaultThroughput: 500 };
  expect(scores()).toEqual([work[0]! / 500 + 1, work[1]! / 500, work[2]! / 500]);
});

test("a prompt of unknown length is taken for one of the usual length", () => {
  const around = new Surroundings(workers({ cost: 2 }, { queued: 1000 }));
  expect(around.choose(policyOf("least_load"), { tokens: 0 }).worker.id).toBe("w1");
  around.settings = { ...SETTINGS, meanPrefillTokens: 10 };
  expect(around.choose(policyOf("least_load"), { tokens: 0 }).worker.id).toBe("w0");
});

test("an idle fleet is used evenly, at the same moment too", () => {
  const around = new Surroundings(idle(3));
  const policy = policyOf("least_load");
  expect(counts(around, () => around.choose(policy).worker, 30)).toEqual([10, 10, 10]);
});

test("a worker of twice the cost gets half the load", () => {
  const around = new Surroundings([worker(0), worker(1, { cost: 2 })]);
  const policy = policyOf("least_load");
  expect(counts(around, () => around.send(policy), 300)).toEqual([200, 100]);
});
