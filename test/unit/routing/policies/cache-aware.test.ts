import { describe, expect, test } from "bun:test";
import { policyOf } from "../../../../src/routing/policies/index.ts";
import { DECODE_TOKENS, NEAR_TOKENS, PLACE_TOKENS, RECOMPUTE } from "../../../../src/routing/score.ts";
import { BLOCK, idle, ids, NOW, prompt, SETTINGS, Surroundings, type Worker, worker, workers } from "./support.ts";

/** A prompt of 1000 tokens and what its first worker, second worker and so on hold of it; then who is chosen and why. */
const PROMPT = ids(1000);

interface Case {
  readonly title: string;
  readonly workers: readonly (Partial<Worker> & { readonly holds?: number; readonly guessed?: number })[];
  readonly settings?: Partial<typeof SETTINGS>;
  readonly chosen: string;
  readonly branch: string;
  readonly matched?: number;
}

const CASES: readonly Case[] = [
  { title: "who holds the prefix", workers: [{}, { holds: 800 }, {}], chosen: "w1", branch: "hit", matched: 800 },
  {
    title: "who holds more of it",
    workers: [{ holds: 400 }, { holds: 800 }, { holds: 640 }],
    chosen: "w1",
    branch: "hit",
    matched: 800,
  },
  {
    title: "who holds it, as long as less waits there than it would take to compute it anew",
    workers: [{}, { holds: 800, queued: RECOMPUTE * 800 - 100 }],
    chosen: "w1",
    branch: "hit",
    matched: 800,
  },
  {
    title: "somebody else when more waits there",
    workers: [{}, { holds: 800, queued: 3000 }],
    chosen: "w0",
    branch: "miss",
    matched: 0,
  },
  {
    title: "somebody else when so many run there that they slow each other down",
    workers: [{}, { holds: 800, running: Math.ceil((RECOMPUTE * 800) / DECODE_TOKENS) + 1 }],
    chosen: "w0",
    branch: "miss",
  },
  {
    title: "somebody else when its batch is full",
    workers: [
      { running: 5 },
      { holds: 800, running: 4, maxRunning: 4, queued: RECOMPUTE * 800 - PLACE_TOKENS / 4 + 500 },
    ],
    chosen: "w0",
    branch: "miss",
  },
  {
    title: "of those that cost as good as the same, the one that holds most",
    workers: [{ holds: 800, queued: RECOMPUTE * 16 + NEAR_TOKENS - 8 }, { holds: 784 }],
    chosen: "w0",
    branch: "tie",
    matched: 800,
  },
  {
    title: "then the one with the fewest requests",
    workers: [
      { holds: 800, running: 2, queued: 0 },
      { holds: 800, running: 1, queued: DECODE_TOKENS },
    ],
    chosen: "w1",
    branch: "tie",
    matched: 800,
  },
  {
    title: "then the one used least recently",
    workers: [{ usedAt: NOW - 1 }, { usedAt: NOW - 9 }, { usedAt: NOW - 5 }],
    chosen: "w1",
    branch: "miss",
  },
  {
    title: "who was never used",
    workers: [{ usedAt: NOW - 1 }, { usedAt: NOW - 9 }, {}],
    chosen: "w2",
    branch: "miss",
  },
  {
    title: "the least loaded, where nobody holds anything",
    workers: [{ running: 2 }, { running: 1 }, { running: 3 }],
    chosen: "w1",
    branch: "miss",
  },
  {
    title: "who has least waiting",
    workers: [{ queued: 500 }, { queued: 900 }, { queued: 200 }],
    chosen: "w2",
    branch: "miss",
  },
  {
    title: "who has room in its cache",
    workers: [{ kv: 0.97 }, { kv: 0.2 }, { kv: 0.9 }],
    chosen: "w1",
    branch: "miss",
  },
  { title: "the cheaper one", workers: [{ cost: 2 }, { cost: 1 }, { cost: 4 }], chosen: "w1", branch: "miss" },
  {
    title: "the cheaper one, as long as it has less to do by its cost",
    workers: [{ cost: 2 }, { cost: 1, queued: 1000 }],
    chosen: "w1",
    branch: "miss",
  },
  {
    title: "the dearer one after that",
    workers: [{ cost: 2 }, { cost: 1, queued: 8000 }],
    chosen: "w0",
    branch: "miss",
  },
  {
    title: "a dear one that holds enough",
    workers: [{ cost: 1.5, holds: 800 }, {}],
    chosen: "w0",
    branch: "hit",
    matched: 800,
  },
  {
    title: "nobody for less than it costs more there",
    workers: [{ cost: 10, holds: 800 }, {}],
    chosen: "w1",
    branch: "miss",
  },
  {
    title: "a guess counts from the threshold on",
    workers: [{}, { guessed: 304 }],
    chosen: "w1",
    branch: "hit",
    matched: 304,
  },
  {
    title: "and for nothing below it",
    workers: [{}, { guessed: 288, running: 1 }],
    chosen: "w0",
    branch: "miss",
    matched: 0,
  },
  {
    title: "what is told counts whatever its length",
    workers: [{}, { holds: 288 }],
    chosen: "w1",
    branch: "hit",
    matched: 288,
  },
  {
    title: "the threshold is the settings'",
    settings: { cacheThreshold: 0.9 },
    workers: [{ guessed: 800, running: 1 }, {}],
    chosen: "w1",
    branch: "miss",
  },
  {
    title: "out of balance, nobody of the more loaded half, whatever they hold",
    settings: { balanceAbsThreshold: 4 },
    workers: [{ running: 5, holds: 992 }, { running: 2, holds: 640 }, { running: 0 }],
    chosen: "w1",
    branch: "balance",
    matched: 640,
  },
  {
    title: "in balance by the absolute threshold",
    settings: { balanceAbsThreshold: 5 },
    workers: [{ running: 3, holds: 992 }, { running: 0 }],
    chosen: "w0",
    branch: "hit",
    matched: 992,
  },
  {
    title: "in balance by the relative threshold",
    settings: { balanceAbsThreshold: 1, balanceRelThreshold: 2 },
    workers: [{ running: 6, holds: 992 }, { running: 3 }],
    chosen: "w0",
    branch: "hit",
    matched: 992,
  },
  {
    title: "nobody with a cache above the overload threshold",
    settings: { overloadTokenUsageThreshold: 0.8 },
    workers: [{ kv: 0.85, holds: 800 }, { kv: 0.7 }],
    chosen: "w1",
    branch: "balance",
  },
  {
    title: "somebody all the same where all are above it",
    settings: { overloadTokenUsageThreshold: 0.8 },
    workers: [{ kv: 0.85, holds: 800 }, { kv: 0.9 }],
    chosen: "w0",
    branch: "hit",
    matched: 800,
  },
  {
    title: "nobody above the balance threshold who holds nothing",
    settings: { balanceTokenUsageThreshold: 0.4 },
    workers: [{ kv: 0.5 }, { kv: 0.3, queued: 2000 }],
    chosen: "w1",
    branch: "balance",
  },
  {
    title: "but who holds something",
    settings: { balanceTokenUsageThreshold: 0.4 },
    workers: [{ kv: 0.5, holds: 800 }, { kv: 0.3 }],
    chosen: "w0",
    branch: "hit",
    matched: 800,
  },
];

function surroundings({ workers: described, settings }: Case): Surroundings {
  const around = new Surroundings(workers(...described));
  around.settings = { ...SETTINGS, ...settings };
  described.forEach(({ holds, guessed }, i) => {
    if (holds !== undefined) around.hold(around.workers[i]!, PROMPT, holds);
    if (guessed !== undefined) around.hold(around.workers[i]!, PROMPT, guessed, false);
  });
  return around;
}

describe("who is chosen", () => {
  test.each([...CASES])("$title", (it) => {
    const { worker: its, branch, matchedTokens } = surroundings(it).choose(policyOf("cache_aware"), prompt(PROMPT));
    expect({ chosen: its.id, branch }).toEqual({ chosen: it.chosen, branch: it.branch as typeof branch });
    if (it.matched !== undefined) expect(matchedTokens).toBe(it.matched);
  });

  test("whatever the order of the candidates, where they differ", () => {
    for (const it of CASES) {
      const around = surroundings(it);
      for (let turn = 0; turn < around.workers.length; turn++) {
        const order = [...around.workers.slice(turn), ...around.workers.slice(0, turn)];
        const { worker: its } = policyOf("cache_aware").choose(order, prompt(PROMPT), around.context);
        expect(`${it.title}: ${its.id}`).toBe(`${it.title}: ${it.chosen}`);
      }
    }
  });

  test("the least score is the chosen one's, where nobody is near", () => {
    const around = surroundings(CASES[1]!);
    const { worker: its, scores = [] } = around.choose(policyOf("cache_aware"), prompt(PROMPT), true);
    const least = scores.reduce((best, one) => (one.score! < best.score! ? one : best));
    expect(least.id).toBe(its.id);
    // the prompt's tokens that are not held, and one request in the batch
    expect(scores[0]?.score).toBe(RECOMPUTE * 600 + DECODE_TOKENS);
  });
});

describe("what is known of caches", () => {
  test("the last token of a prompt is always computed", () => {
    const around = new Surroundings(idle(2));
    const tokenIds = ids(10 * BLOCK);
    around.hold(around.workers[1]!, tokenIds, 10 * BLOCK);
    expect(around.choose(policyOf("cache_aware"), prompt(tokenIds)).matchedTokens).toBe(9 * BLOCK);
    const longer = Uint32Array.from([...tokenIds, 1]);
    expect(around.choose(policyOf("cache_aware"), prompt(longer)).matchedTokens).toBe(10 * BLOCK);
  });

  test("two models, adapters or salts never mix", () => {
    const around = new Surroundings(idle(2));
    around.hold(around.workers[1]!, PROMPT, 960);
    const matched = (more: object) => around.choose(policyOf("cache_aware"), prompt(PROMPT, more)).matchedTokens;
    expect(matched({})).toBe(960);
    expect(matched({ lora: "sql" })).toBe(0);
    expect(matched({ cacheSalt: "tenant" })).toBe(0);
    around.model = "other";
    expect(matched({})).toBe(0);
  });

  test("workers with blocks of different sizes, the first three of them", () => {
    const sizes = [16, 32, 64, 128, 32];
    const around = new Surroundings(sizes.map((blockSize, i) => worker(i, { blockSize })));
    for (const its of around.workers) around.hold(its, PROMPT, 960);
    const { scores } = around.choose(policyOf("cache_aware"), prompt(PROMPT), true);
    expect(scores?.map(({ matchedTokens }) => matchedTokens)).toEqual([960, 960, 960, 0, 960]);
  });

  test("the chain is that of the chosen one's blocks", () => {
    const around = new Surroundings([worker(0, { blockSize: 16 }), worker(1, { blockSize: 64 })]);
    around.hold(around.workers[1]!, PROMPT, 960);
    const { chain, matchedTokens } = around.choose(policyOf("cache_aware"), prompt(PROMPT));
    expect([chain?.blockSize, chain?.count, matchedTokens]).toEqual([64, 15, 960]);
  });

  test("a prompt shorter than a block, or without tokens, goes by load", () => {
    const around = new Surroundings(workers({ running: 1 }, {}));
    for (const ask of [prompt(ids(BLOCK - 1)), prompt(new Uint32Array(0)), { tokens: 5000 }, { tokens: 0 }]) {
      const choice = around.choose(policyOf("cache_aware"), ask);
      expect([choice.worker.id, choice.branch, choice.chain]).toEqual(["w1", "miss", undefined]);
    }
  });

  test("of a worker that the client names it is told all the same", () => {
    const around = new Surroundings(idle(3));
    around.hold(around.workers[2]!, PROMPT, 800);
    const choice = around.choose(policyOf("cache_aware"), prompt(PROMPT, { target: "w2" }));
    expect([choice.branch, choice.matchedTokens, choice.isExact, choice.chain?.count]).toEqual([
      "target",
      800,
      true,
      62,
    ]);
  });
});
