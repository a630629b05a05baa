import { describe, expect, test } from "bun:test";
import { EngineCore } from "../../../src/simulator/core/engine-core.ts";
import { ROOT_HASH } from "../../../src/simulator/core/kv-cache.ts";
import type { KvEvent } from "../../../src/simulator/core/kv-events.ts";
import { type CoreOptions, defaultCoreOptions } from "../../../src/simulator/core/options.ts";
import type { Sequence } from "../../../src/simulator/core/sequence.ts";

function core(changed: Partial<CoreOptions> = {}): EngineCore {
  return new EngineCore({ ...defaultCoreOptions, ...changed });
}

interface Watched {
  readonly sequence: Sequence;
  readonly ids: number[];
  cached: number;
  finished: boolean;
}

/** Ids of an output that no other output shares. */
const outputId = (seed: number, position: number): number => 1_000_000 + seed * 10_000 + position;

let seeds = 0;

function submit(engine: EngineCore, prompt: ArrayLike<number>, length: number, tokenIntervalMs = 0): Watched {
  const seed = seeds++;
  const watched = { ids: [] as number[], cached: -1, finished: false } as {
    -readonly [K in keyof Watched]: Watched[K];
  };
  watched.sequence = engine.submit({
    prompt: Uint32Array.from(prompt),
    plan: (cached) => {
      watched.cached = cached;
      return { length, idAt: (position) => outputId(seed, position), finishReason: "length" };
    },
    tokenIntervalMs,
    onToken: (_, id) => watched.ids.push(id),
    onFinish: () => {
      watched.finished = true;
    },
  });
  return watched;
}

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);

/** Runs steps to the end and returns the virtual time. */
function drain(engine: EngineCore, from = 0): number {
  let now = from;
  for (let steps = 0; engine.busy; steps++) {
    if (steps > 100_000) throw new Error("never ends");
    now += engine.beginStep(now).durationMs;
    engine.endStep(now);
  }
  return now;
}

/** Applies an event to what is cached, as copies by hash. */
function follow(mirror: Map<number, number>, event: KvEvent): void {
  const add = (hash: number, change: number) => {
    const copies = (mirror.get(hash) ?? 0) + change;
    if (copies > 0) mirror.set(hash, copies);
    else mirror.delete(hash);
  };
  if (event.kind === "stored") for (const { hash } of event.blocks) add(hash, 1);
  else if (event.kind === "removed") for (const hash of event.hashes) add(hash, -1);
  else mirror.clear();
}

function copiesOf(engine: EngineCore): Map<number, number> {
  const copies = new Map<number, number>();
  for (const { hash } of engine.cache.blocks()) copies.set(hash, (copies.get(hash) ?? 0) + 1);
  return copies;
}

describe("batching", () => {
  test("a step costs its base and a share per request; all running requests get a token", () => {
    const engine = core();
    const watched = [1, 2, 3].map((i) => submit(engine, range(i * 1000, 20), 5));
    const step = engine.beginStep(0);
    expect(step.prefillTokens).toBe(60);
    expect(step.batch).toHaveLength(3);
    // The prompt's 60 tokens take 7.5 ms, the decode 6 + 3 * 0.35.
    expect(step.durationMs).toBeCloseTo(7.5);
    engine.endStep(7.5);
    expect(watched.map((w) => w.ids.length)).toEqual([1, 1, 1]);
    expect(engine.beginStep(7.5).durationMs).toBeCloseTo(7.05);
    engine.endStep(14.55);
    drain(engine, 14.55);
    expect(watched.every((w) => w.finished && w.ids.length === 5)).toBe(true);
    expect(watched[0]!.ids).toEqual(range(watched[0]!.ids[0]!, 5));
  });

  test("a newcomer joins the running batch at the next step", () => {
    const engine = core();
    const first = submit(engine, range(0, 20), 10);
    engine.beginStep(0);
    const second = submit(engine, range(5000, 20), 1);
    engine.endStep(10);
    expect([first.ids.length, second.ids.length]).toEqual([1, 0]);
    expect(engine.beginStep(10).batch).toHaveLength(2);
    engine.endStep(20);
    expect([first.ids.length, second.ids.length, second.finished]).toEqual([2, 1, true]);
  });

  test("no more than the limit run at once; the others follow in order", () => {
    const engine = core({ maxRunning: 2 });
    const order: number[] = [];
    for (let i = 0; i < 5; i++)
      engine.submit({
        prompt: Uint32Array.from(range(i * 100, 10)),
        plan: () => ({ length: 2, idAt: () => 1, finishReason: "length" }),
        onToken: () => undefined,
        onFinish: () => order.push(i),
      });
    engine.beginStep(0);
    expect(engine.load()).toMatchObject({ running: 2, waiting: 3, waitingUncachedTokens: 30 });
    engine.endStep(10);
    drain(engine, 10);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  test("prompts are computed in chunks that share one budget, while others decode on", () => {
    const engine = core();
    const small = submit(engine, range(0, 10), 100);
    engine.beginStep(0);
    engine.endStep(1);
    const big = submit(engine, range(100_000, 5000), 1);
    const tokens: number[] = [];
    for (let now = 0; !big.finished; now += 1) {
      tokens.push(engine.beginStep(now).prefillTokens);
      engine.endStep(now + 1);
    }
    expect(tokens).toEqual([2048, 2048, 904]);
    expect(small.ids).toHaveLength(4);
    expect(big.ids).toHaveLength(1);
  });

  test("a token interval slows one request only; a step of nothing but waiting lasts until the first is due", () => {
    const engine = core({ decodeBaseMs: 1, decodePerRequestMs: 0 });
    const slow = submit(engine, range(0, 5), 3, 50);
    const quick = submit(engine, range(900, 5), 20);
    let now = 0;
    while (!quick.finished) {
      now += engine.beginStep(now).durationMs;
      engine.endStep(now);
    }
    expect(slow.ids).toHaveLength(1);
    const idle = engine.beginStep(now);
    expect(idle.batch).toHaveLength(0);
    expect(now + idle.durationMs).toBeCloseTo(51, 0);
    engine.endStep(now + idle.durationMs);
    expect(drain(engine, now + idle.durationMs)).toBeCloseTo(103, 0);
    expect(slow.finished).toBe(true);
  });
});

describe("prefix cache", () => {
  test("whole blocks of a known prompt are found, never its last token; the cached part takes no time", () => {
    const engine = core();
    const prompt = range(0, 64);
    const first = submit(engine, prompt, 1);
    drain(engine);
    expect(first.cached).toBe(0);
    const second = submit(engine, prompt, 1);
    expect(second.sequence.uncachedOnArrival).toBe(16);
    expect(engine.beginStep(0).prefillTokens).toBe(16);
    engine.endStep(10);
    expect(second.cached).toBe(48);
    const longer = submit(engine, [...prompt, 7, 8, 9], 1);
    drain(engine);
    expect(longer.cached).toBe(64);
    const other = submit(engine, [1, ...prompt.slice(1)], 1);
    drain(engine);
    expect(other.cached).toBe(0);
  });

  test("an answer's blocks are found by the next turn of the conversation", () => {
    const engine = core();
    const first = submit(engine, range(0, 20), 30);
    drain(engine);
    const second = submit(engine, [...range(0, 20), ...first.ids, 5, 6], 1);
    drain(engine);
    // 49 of the 50 tokens have their KV: the last one was never fed back.
    expect(second.cached).toBe(48);
  });

  test.each([
    // 10 blocks of the first and its next, one more prompt block of the second and its next.
    ["copies", 13, 11],
    // The second prompt's last block gives way to the first's.
    ["shares", 12, 10],
  ] as const)("requests at the same time share the blocks of a common prefix: %s", (duplicates, inUse, cached) => {
    const engine = core({ duplicates });
    const prompt = range(0, 160);
    const pair = [submit(engine, prompt, 4), submit(engine, prompt, 4)];
    engine.beginStep(0);
    expect(pair[1]!.cached).toBe(144);
    expect(engine.load().blocksInUse).toBe(inUse);
    engine.endStep(1);
    drain(engine, 1);
    expect(engine.load()).toMatchObject({ blocksInUse: 0, blocksCached: cached });
  });

  test("without prefix caching nothing is found and nothing stays", () => {
    const engine = core({ prefixCaching: false });
    submit(engine, range(0, 64), 1);
    drain(engine);
    const again = submit(engine, range(0, 64), 1);
    drain(engine);
    expect(again.cached).toBe(0);
    expect(engine.load()).toMatchObject({ blocksInUse: 0, blocksCached: 0 });
  });

  test("eviction starts above the high mark, ends at the low one, oldest first and tails before heads", () => {
    const engine = core({ kvTokens: 1600, evictAbove: 0.92, evictTo: 0.85 });
    const prompts = range(0, 9).map((i) => range(i * 1000, 161));
    for (const prompt of prompts) {
      submit(engine, prompt, 1);
      drain(engine);
    }
    // Nine prompts of ten full blocks: 90 of 100 blocks are cached.
    expect(engine.load()).toMatchObject({ blocksCached: 90, evictedBlocks: 0 });
    submit(engine, range(50_000, 47), 1);
    engine.beginStep(0);
    expect(engine.load()).toMatchObject({ evictedBlocks: 8, blocksInUse: 3 });
    engine.endStep(1);
    drain(engine);
    const cachedOf = (i: number) => engine.cache.matchedTokens(prompts[i]!, 160);
    expect(cachedOf(0)).toBe(32);
    expect(cachedOf(1)).toBe(160);
  });
});

describe("preemption", () => {
  test("when no block is left the newest is taken back, computed again later, and loses no token", () => {
    const engine = core({ kvTokens: 16 * 12, prefixCaching: false });
    const old = submit(engine, range(0, 64), 60);
    const young = submit(engine, range(1000, 64), 60);
    drain(engine);
    expect(engine.load().preemptions).toBeGreaterThan(0);
    expect(old.sequence.preemptions).toBe(0);
    expect(young.sequence.preemptions).toBeGreaterThan(0);
    for (const watched of [old, young]) expect(watched.ids).toEqual(range(watched.ids[0]!, 60));
    expect(engine.load().blocksInUse).toBe(0);
  });

  test("a preempted request finds its own blocks in the cache if they survived, and keeps its first count of cached tokens", () => {
    const engine = core({ kvTokens: 16 * 12, evictAbove: 1, evictTo: 1 });
    submit(engine, range(0, 64), 60);
    const young = submit(engine, range(1000, 64), 60);
    drain(engine);
    expect(young.sequence.preemptions).toBeGreaterThan(0);
    expect(young.cached).toBe(0);
    expect(young.sequence.cachedTokens).toBe(0);
    expect(young.ids).toHaveLength(60);
  });
});

describe("aborts", () => {
  test("free everything at once, running or waiting, and no token comes afterwards", () => {
    const engine = core({ maxRunning: 1 });
    const running = submit(engine, range(0, 100), 50);
    const waiting = submit(engine, range(1000, 100), 50);
    engine.beginStep(0);
    expect(engine.load().blocksInUse).toBe(7);
    expect(engine.abort(running.sequence)).toBe(true);
    expect(engine.abort(waiting.sequence)).toBe(true);
    expect(engine.load()).toMatchObject({ running: 0, waiting: 0, blocksInUse: 0 });
    engine.endStep(10);
    expect(running.ids).toEqual([]);
    expect(engine.abort(running.sequence)).toBe(false);
  });
});

test("no block is lost over random runs, events mirror the cache, and every request gets its own tokens", () => {
  let state = 42;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
  let preemptions = 0;
  let evicted = 0;
  for (let run = 0; run < 20; run++) {
    const engine = core({
      kvTokens: 16 * (20 + random(60)),
      prefillChunk: 16 + random(200),
      maxRunning: 1 + random(12),
      duplicates: run % 2 === 0 ? "shares" : "copies",
    });
    const { events } = engine.cache;
    events.listening = true;
    const mirror = new Map<number, number>();
    const limit = engine.cache.totalBlocks * 16;
    const all: Watched[] = [];
    const aborted = new Set<Watched>();
    for (let step = 0; step < 400; step++) {
      if (step < 300 && random(3) === 0) {
        const length = 1 + random(60);
        // Prompts of few families, so that prefixes are shared.
        const prompt = range(random(4) * 1000, 1 + random(Math.min(200, limit - length - 1)));
        all.push(submit(engine, prompt, length));
      }
      if (random(12) === 0 && all.length > 0) {
        const victim = all[random(all.length)]!;
        if (engine.abort(victim.sequence)) aborted.add(victim);
      }
      engine.beginStep(step);
      const held = new Set(engine.running.flatMap((sequence) => sequence.blocks));
      expect(engine.cache.inUse).toBe(held.size);
      expect(engine.cache.inUse + engine.cache.idleBlocks).toBeLessThanOrEqual(engine.cache.totalBlocks);
      for (const sequence of engine.running) {
        expect(sequence.blocks.length * 16).toBeGreaterThanOrEqual(sequence.computed);
        expect(new Set(sequence.blocks).size).toBe(sequence.blocks.length);
      }
      engine.endStep(step + 1);
      for (const event of events.take() ?? []) follow(mirror, event);
      expect(mirror).toEqual(copiesOf(engine));
      if (engine.options.duplicates === "shares")
        for (const { parent } of engine.cache.blocks()) expect(parent === ROOT_HASH || mirror.has(parent!)).toBe(true);
    }
    drain(engine, 1000);
    expect(engine.load()).toMatchObject({ running: 0, waiting: 0, blocksInUse: 0 });
    preemptions += engine.load().preemptions;
    evicted += engine.load().evictedBlocks;
    for (const watched of all) {
      expect(watched.finished).toBe(!aborted.has(watched));
      expect(watched.ids).toEqual(range(watched.ids[0] ?? 0, watched.ids.length));
    }
  }
  // The runs went through what they are meant to go through.
  expect(preemptions).toBeGreaterThan(20);
  expect(evicted).toBeGreaterThan(100);
});
