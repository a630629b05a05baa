import { describe, expect, test } from "bun:test";
import { policyOf } from "../../../../src/routing/policies/index.ts";
import { LengthShares } from "../../../../src/routing/policies/length-shares.ts";
import { StickyBoard } from "../../../../src/threads/sticky-board.ts";
import { random } from "../../generation/random.ts";
import { idle, NOW, SETTINGS, Surroundings, worker, workers } from "./support.ts";

test("before anything is learnt, lengths are parted evenly up to SMG's first maximum", () => {
  const around = new Surroundings(idle(4));
  const of = (tokens: number) => around.choose(policyOf("bucket"), { tokens }).worker.id;
  expect([1, 1000, 1025, 2047, 2049, 3100, 5000, 100_000].map(of)).toEqual([
    "w0",
    "w0",
    "w1",
    "w1",
    "w2",
    "w3",
    "w3",
    "w3",
  ]);
  expect(around.choose(policyOf("bucket"), { tokens: 1 }).branch).toBe("key");
});

test("a prompt of unknown length is taken for one of the usual length", () => {
  const around = new Surroundings(idle(8));
  expect(around.choose(policyOf("bucket"), { tokens: 0 }).worker.id).toBe("w2");
});

describe("what is learnt", () => {
  /** Lengths of 64 to 8000 tokens, short ones more often. */
  const lengths = (seed: number, count: number): number[] => {
    const { below } = random(seed);
    return Array.from({ length: count }, () => Math.floor(64 * (8000 / 64) ** (below(10_000) / 10_000)));
  };
  const tokensOf = (
    around: Surroundings,
    policy: ReturnType<typeof policyOf>,
    prompts: readonly number[],
  ): number[] => {
    const got = around.workers.map(() => 0);
    for (const tokens of prompts) got[around.workers.indexOf(around.choose(policy, { tokens }).worker)]! += tokens;
    const sum = got.reduce((a, b) => a + b, 0);
    return got.map((its) => its / sum);
  };

  test("workers get equal parts of the tokens, longer prompts the later ones", () => {
    const around = new Surroundings(idle(4));
    const policy = policyOf("bucket");
    tokensOf(around, policy, lengths(1, 2000));
    around.now += 5000;
    for (const part of tokensOf(around, policy, lengths(2, 2000))) expect(Math.abs(part - 0.25)).toBeLessThan(0.05);
    const order = [64, 700, 1500, 3000, 7900].map((tokens) => around.choose(policy, { tokens }).worker.member);
    expect(order).toEqual([...order].sort());
    expect([order[0], order.at(-1)]).toEqual([0, 3]);
  });

  test("by cost, not equal ones", () => {
    const around = new Surroundings(workers({}, { cost: 3 }));
    const policy = policyOf("bucket");
    tokensOf(around, policy, lengths(1, 2000));
    around.now += 5000;
    const [first, second] = tokensOf(around, policy, lengths(2, 2000));
    expect(Math.abs(first! - 0.75)).toBeLessThan(0.05);
    expect(Math.abs(second! - 0.25)).toBeLessThan(0.05);
  });

  test("from all threads, after the interval, each model by itself", () => {
    const around = new Surroundings(idle(2));
    const context = { ...around.context, sticky: StickyBoard.create() };
    const [one, other] = [policyOf("bucket"), policyOf("bucket")];
    const choose = (policy: typeof one, tokens: number, more: object = {}) =>
      policy.choose(around.workers, { tokens }, { ...context, ...more }).worker.id;
    expect(choose(other, 1000)).toBe("w0");
    for (let i = 0; i < 500; i++) choose(one, 100 + (i % 100));
    expect(choose(other, 1000)).toBe("w0");
    expect(choose(other, 1000, { now: NOW + SETTINGS.bucketAdjustMs })).toBe("w1");
    expect(choose(other, 1000, { now: NOW + SETTINGS.bucketAdjustMs, model: "two" })).toBe("w0");
  });

  test("new lengths displace the old ones by and by", () => {
    const shares = new LengthShares();
    const seen = new Uint32Array(96);
    const at = (tokens: number) => Math.floor(4 * Math.log2(tokens));
    seen[at(100)]! += 1000;
    shares.learn(seen, 0);
    expect(shares.below(1000)).toBe(1);
    for (let turn = 1; turn <= 12; turn++) {
      seen[at(4000)]! += 1000;
      shares.learn(seen, turn * 5000);
    }
    expect(shares.below(1000)).toBeLessThan(0.01);
    // too few to learn from, and counters that have run over
    seen[at(100)]! += 10;
    shares.learn(seen, 100_000);
    expect(shares.below(1000)).toBeLessThan(0.01);
    expect(shares.below(10 ** 9)).toBe(1);
  });
});

describe("prompts of about one length", () => {
  test("go by load, as all of them are alike", () => {
    const around = new Surroundings(idle(4));
    const policy = policyOf("bucket");
    const { below } = random(5);
    const choose = () => around.choose(policy, { tokens: 3630 + below(50) }).worker;
    for (let i = 0; i < 100; i++) choose();
    around.now += 5000;
    expect(new Set(Array.from({ length: 20 }, choose)).size).toBe(1); // while nobody has anything to do
    for (let i = 0; i < 40; i++) choose().running++;
    expect(around.workers.map(({ running }) => running)).toEqual([10, 10, 10, 10]);
    around.workers[2]!.queued = 10_000;
    for (let i = 0; i < 30; i++) choose().running++;
    expect(around.workers.map(({ running }) => running)).toEqual([20, 20, 10, 20]);
  });

  test("go by load before anything is learnt, too", () => {
    const around = new Surroundings(idle(3));
    const policy = policyOf("bucket");
    for (let i = 0; i < 30; i++) around.choose(policy, { tokens: 9000 }).worker.running++;
    expect(around.workers.map(({ running }) => running)).toEqual([10, 10, 10]);
  });

  test("leave short ones alone, whose worker has more to do", () => {
    const around = new Surroundings(idle(3));
    const policy = policyOf("bucket");
    const both = (i: number) => (i % 10 === 0 ? 3600 : 200);
    for (let i = 0; i < 1000; i++) around.choose(policy, { tokens: both(i) });
    around.now += 5000;
    const ofShort = around.choose(policy, { tokens: 200 }).worker;
    ofShort.running = 3;
    const long = Array.from({ length: 40 }, () => {
      const { worker: its } = around.choose(policy, { tokens: 3600 });
      its.running++;
      return its;
    });
    expect(long.includes(around.workers[0]!)).toBe(false);
    expect(around.choose(policy, { tokens: 200 }).worker).toBe(ofShort);
  });
});

test("out of balance, the one with the fewest tokens that wait", () => {
  const around = new Surroundings(
    workers({ running: 70, queued: 10 }, { running: 1, queued: 500 }, { running: 2, queued: 90 }),
  );
  const { worker: its, branch } = around.choose(policyOf("bucket"), { tokens: 10 });
  expect([its.id, branch]).toEqual(["w0", "balance"]);
  around.workers[0]!.queued = 600;
  expect(around.choose(policyOf("bucket"), { tokens: 10 }).worker.id).toBe("w2");
  around.settings = { ...SETTINGS, balanceAbsThreshold: 100 };
  expect(around.choose(policyOf("bucket"), { tokens: 10 }).branch).toBe("key");
});

test("explaining counts no length", () => {
  const around = new Surroundings([worker(0), worker(1)]);
  around.choose(policyOf("bucket"), { tokens: 100 }, true);
  expect([...around.sticky.lengths("model")].every((count) => count === 0)).toBe(true);
});
