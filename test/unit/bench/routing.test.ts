import { describe, expect, test } from "bun:test";
import { workBetween } from "../../../bench/routing/engine-fleet.ts";
import { knowing, parted } from "../../../bench/routing/knowing.ts";
import { MODEL_SHAPES } from "../../../bench/routing/model-shapes.ts";
import { seeing } from "../../../bench/routing/oracle.ts";
import type { TokenAsk } from "../../../bench/routing/prompt-tokens.ts";
import { boundsOf, replay } from "../../../bench/routing/replay.ts";
import { SHAPES } from "../../../bench/routing/shapes.ts";
import { defaultCoreOptions } from "../../../src/simulator/core/options.ts";

describe("shapes", () => {
  test.each([...SHAPES, ...MODEL_SHAPES].map((shape) => [shape.id, shape] as const))(
    "%s: a seed gives the same stream, another one another",
    (_, shape) => {
      const asks = shape.asks(7, 4);
      expect(asks.length).toBeGreaterThan(0);
      expect(Bun.hash(JSON.stringify(shape.asks(7, 4)))).toBe(Bun.hash(JSON.stringify(asks)));
      expect(JSON.stringify(shape.asks(8, 4)[0])).not.toBe(JSON.stringify(asks[0]));
      for (const [i, ask] of asks.entries()) {
        expect(ask.atMs).toBeGreaterThanOrEqual(asks[i - 1]?.atMs ?? 0);
        expect(ask.atMs).toBeLessThan(4000);
        expect(ask.messages.at(-1)!.role).toBe("user");
      }
    },
  );

  test("what has the same key begins alike, and no two prompts are equal", () => {
    const tenants = SHAPES.find(({ id }) => id === "tenants")!.asks(1, 20);
    const heads = new Map<string, string>();
    for (const { key, messages } of tenants) {
      const head = heads.get(key) ?? messages[0]!.content;
      expect(messages[0]!.content === head).toBe(true);
      heads.set(key, head);
    }
    expect(heads.size).toBeGreaterThan(40);
    expect(new Set(heads.values()).size).toBe(heads.size);
    expect(new Set(tenants.map(({ messages }) => messages[1]!.content)).size).toBe(tenants.length);
  });

  test("turns of a conversation grow from each other", () => {
    const turns = SHAPES.find(({ id }) => id === "turns")!.asks(1, 20);
    const last = new Map<string, readonly unknown[]>();
    let grown = 0;
    for (const { key, messages } of turns) {
      const before = last.get(key);
      if (before !== undefined) {
        expect(messages.length).toBe(before.length + 2);
        expect(JSON.stringify(messages.slice(0, before.length)) === JSON.stringify(before)).toBe(true);
        grown++;
      }
      last.set(key, messages);
    }
    expect(grown).toBeGreaterThan(100);
  });
});

/** Prompts of 64 blocks, of which the first 60 are of one of `groups`, one each `gapMs`. */
function stream(count: number, groups: number, gapMs: number): TokenAsk[] {
  return Array.from({ length: count }, (_, i) => ({
    atMs: i * gapMs,
    ids: Uint32Array.from({ length: 1024 }, (_, at) =>
      at < 960 ? 1000 * ((i * 7) % groups) + at : 1e6 + 1024 * i + at,
    ),
    maxTokens: 8,
    key: String((i * 7) % groups),
  }));
}

describe("the replay", () => {
  const times = { prefill: 1024 / 8, step: 6.35 };

  test("takes the engine's own time", () => {
    const one = replay(stream(1, 1, 0), 2, defaultCoreOptions, seeing("round_robin"));
    expect(one.hitRate).toBe(0);
    expect(one.ttftMeanMs).toBeCloseTo(times.prefill, 6);
    expect(one.latencyMeanMs).toBeCloseTo(times.prefill + 7 * times.step, 6);
  });

  test("round robin computes a beginning at every engine, who sees the caches computes it once", () => {
    const asks = stream(360, 9, 100);
    const turns = replay(asks, 4, defaultCoreOptions, seeing("round_robin"));
    const seen = replay(asks, 4, defaultCoreOptions, seeing("cache_aware"));
    expect(seen.hitRate).toBeCloseTo(((360 - 9) * 960) / (360 * 1024), 6);
    const bounds = boundsOf(asks, defaultCoreOptions);
    expect(bounds.hitRate).toBeCloseTo(seen.hitRate, 6);
    expect(bounds.ttftMeanMs).toBeCloseTo(((1024 * 9) / 8 + 8 * 351) / 360, 6);
    expect(turns.hitRate).toBeLessThan(seen.hitRate);
    expect(seen.ttftMeanMs).toBeLessThan(turns.ttftMeanMs);
    // Nine beginnings at four engines: one has three of them.
    expect(seen.tokenSpread).toBeCloseTo(4 / 3, 6);
  });

  test("who knows what a gateway knows computes each beginning once, by events and by what was sent", () => {
    const asks = stream(360, 9, 100);
    const most = boundsOf(asks, defaultCoreOptions).hitRate;
    for (const hasEvents of [true, false])
      for (const threads of [1, 3])
        expect(replay(asks, 4, defaultCoreOptions, knowing("cache_aware", hasEvents, threads)).hitRate).toBeCloseTo(
          most,
          6,
        );
    const homes = replay(asks, 4, defaultCoreOptions, parted());
    expect(homes.hitRate).toBeCloseTo(most, 6);
    expect(homes.requestSpread).toBeCloseTo(4 / 3, 6);
  });

  test("a burst with one new beginning waits for it where it is computed", () => {
    const asks = stream(2, 1, 1);
    const { requestSpread, hitRate } = replay(asks, 4, defaultCoreOptions, seeing("cache_aware"));
    expect(requestSpread).toBe(4);
    expect(hitRate).toBeCloseTo(960 / (2 * 1024), 6);
  });
});

test("what engines did is what they counted in between", () => {
  const counts = (received: number, promptTokens: number, cachedTokens: number) => ({
    ...{ received, promptTokens, cachedTokens },
    ...{ finished: received, preemptions: 0, open: 0 },
  });
  const work = workBetween([counts(1, 100, 0), counts(1, 100, 50)], [counts(4, 400, 150), counts(2, 200, 100)]);
  expect(work.requestsByEngine).toEqual([3, 1]);
  expect(work.requestSpread).toBe(1.5);
  expect(work.promptTokens).toBe(400);
  expect(work.hitRate).toBe(0.5);
  expect(work.tokenSpread).toBe(1.5);
});
