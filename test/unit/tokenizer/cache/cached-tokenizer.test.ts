import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createTokenizerCache } from "../../../../src/tokenizer/cache/board.ts";
import { type CacheMismatch, cachedTokenizer } from "../../../../src/tokenizer/cache/cached-tokenizer.ts";
import { cacheStats, type LevelStats } from "../../../../src/tokenizer/cache/stats.ts";
import type { Tokenizer } from "../../../../src/tokenizer/tokenizer.ts";
import { random, smallTokenizer } from "../fixtures.ts";

const tokenizer = await smallTokenizer("cl100k");
const settings = { l0: true, l1: true, l0Entries: 1000, bytes: 8 << 20 };
const never = { verifyShare: 0 };
const turn = (i: number, words = 520): string => `<|begin|>user\n${`word${i} `.repeat(words)}<|end|>\n`;
const chat = (turns: number): string => Array.from({ length: turns }, (_, i) => turn(i)).join("");
const level = (memory: SharedArrayBuffer, name: "l0" | "l1"): LevelStats =>
  cacheStats(memory).find((one) => one.level === name)!;

test("a repeated text is taken from L0, whichever thread's wrapper stored it, into arrays of the caller's own", () => {
  const memory = createTokenizerCache(settings);
  const [one, two] = [cachedTokenizer(tokenizer, memory, never), cachedTokenizer(tokenizer, memory, never)];
  const right = tokenizer.encode(chat(3));
  const first = one.encode(chat(3));
  const second = two.encode(chat(3));
  expect([first, second]).toEqual([right, right]);
  second.fill(0);
  first.fill(0);
  expect(one.encode(chat(3))).toEqual(right);
  expect(one.encodeSoon(chat(3))).toEqual(right);
  expect(second.buffer instanceof SharedArrayBuffer).toBe(false);
  expect(level(memory, "l0")).toMatchObject({ hits: 3, misses: 1, insertions: 1, entries: 1, evictions: 0 });
});

test("a grown text is taken from L1 up to the last known cut, and its new cuts are known next", () => {
  const memory = createTokenizerCache(settings);
  const cached = cachedTokenizer(tokenizer, memory, never);
  for (let turns = 1; turns <= 8; turns++) expect(cached.encode(chat(turns))).toEqual(tokenizer.encode(chat(turns)));
  expect(level(memory, "l1")).toMatchObject({ hits: 7, misses: 1 });
  expect(level(memory, "l1")).toMatchObject({ insertions: 8, entries: 8 }); // each cut was the last one once
  expect(level(memory, "l0")).toMatchObject({ hits: 0, misses: 8, insertions: 8 });
});

test("a text that differs where long segments are not looked at is taken up to the cut before", () => {
  const memory = createTokenizerCache(settings);
  const cached = cachedTokenizer(tokenizer, memory, never);
  const long = (word: string): string => `<|begin|>user\n${"so ".repeat(800)}${word}${" on".repeat(2000)}<|end|>\n`;
  const twin = (word: string): string => chat(2) + long(word);
  const texts = ["alpha", "gamma"].map(twin);
  expect(texts[0]!.length).toBe(texts[1]!.length);
  cached.encode(chat(2));
  for (const text of [...texts, ...texts.map((text) => text + turn(10)), ...texts.map((text) => text + turn(11))])
    expect(cached.encode(text)).toEqual(tokenizer.encode(text));
  expect(level(memory, "l1")).toMatchObject({ hits: 6, misses: 1 });
});

test("short texts, and those that would fill a quarter of the cache, pass by", () => {
  const memory = createTokenizerCache({ ...settings, bytes: 100_000 });
  const cached = cachedTokenizer(tokenizer, memory, never);
  for (let i = 0; i < 2; i++) {
    for (const text of ["", "a", turn(1, 20), chat(200)]) expect(cached.encode(text)).toEqual(tokenizer.encode(text));
  }
  expect(level(memory, "l0")).toMatchObject({ hits: 0, insertions: 0, entries: 0 });
});

describe("flags", () => {
  const framed: Tokenizer = { ...tokenizer, postProcessor: { single: [7, "A", 8, 9], pair: ["A", "B"] } };

  test("what the post-processor adds is put around what is cached, on both levels", () => {
    const memory = createTokenizerCache(settings);
    const cached = cachedTokenizer(framed, memory, never);
    const plain = [...tokenizer.encode(chat(3))];
    for (let i = 0; i < 2; i++) {
      expect([...cached.encode(chat(3), { addSpecialTokens: true })]).toEqual([7, ...plain, 8, 9]);
      expect([...cached.encode(chat(3))]).toEqual(plain);
    }
    expect([...cached.encodeSoon(chat(4), { addSpecialTokens: true })!]).toEqual([
      7,
      ...tokenizer.encode(chat(4)),
      8,
      9,
    ]);
    expect([level(memory, "l0").hits, level(memory, "l1").hits]).toEqual([3, 1]);
  });

  test("special tokens as text have a key of their own, and no beginnings", () => {
    const memory = createTokenizerCache(settings);
    const cached = cachedTokenizer(tokenizer, memory, never);
    const [plain, asText] = [tokenizer.encode(chat(3)), tokenizer.encode(chat(3), { specialAsText: true })];
    expect(asText).not.toEqual(plain);
    for (let i = 0; i < 2; i++) {
      expect(cached.encode(chat(3), { specialAsText: true })).toEqual(asText);
      expect(cached.encode(chat(3))).toEqual(plain);
    }
    expect(cached.encode(chat(4), { specialAsText: true })).toEqual(tokenizer.encode(chat(4), { specialAsText: true }));
    expect([level(memory, "l0").hits, level(memory, "l1").hits]).toEqual([2, 0]);
  });
});

describe("texts that take long", () => {
  const slow: Tokenizer = {
    ...tokenizer,
    encodeSoon: () => undefined,
    buffer: tokenizer.buffer && { ...tokenizer.buffer, encodeFrom: () => undefined },
    postProcessor: { single: [7, "A", 8], pair: ["A", "B"] },
  };

  test("are answered once another thread's result is remembered", () => {
    const cached = cachedTokenizer(slow, createTokenizerCache(settings), never);
    expect(cached.encodeSoon(chat(3))).toBeUndefined();
    cached.remember(chat(3), tokenizer.encode(chat(3)));
    expect(cached.encodeSoon(chat(3))).toEqual(tokenizer.encode(chat(3)));
    const framed = Uint32Array.from([7, ...tokenizer.encode(chat(5)), 8]);
    cached.remember(chat(5), framed, { addSpecialTokens: true });
    expect(cached.encodeSoon(chat(5))).toEqual(tokenizer.encode(chat(5)));
    expect(cached.encodeSoon(chat(5), { addSpecialTokens: true })).toEqual(framed);
    expect(cached.encodeSoon(chat(5), { specialAsText: true })).toBeUndefined();
  });

  test("are answered by their beginnings", () => {
    const memory = createTokenizerCache(settings);
    const { buffer } = tokenizer;
    const encodeFrom = (from: number) => (from === 0 ? undefined : buffer?.encodeFrom(from));
    const cached = cachedTokenizer({ ...slow, buffer: buffer && { ...buffer, encodeFrom } }, memory, never);
    expect(cached.encodeSoon(chat(3))).toBeUndefined();
    cachedTokenizer(tokenizer, memory, never).encode(chat(3));
    expect(cached.encodeSoon(chat(4))).toEqual(tokenizer.encode(chat(4)));
    expect(level(memory, "l1").hits).toBe(1);
  });

  test("a result that is known already is not stored again", () => {
    const memory = createTokenizerCache(settings);
    const cached = cachedTokenizer(slow, memory, never);
    for (let i = 0; i < 5; i++) cached.remember(chat(3), tokenizer.encode(chat(3)));
    expect(level(memory, "l0")).toMatchObject({ insertions: 1, entries: 1 });
  });
});

describe("the self-check", () => {
  /** A tokenizer that gives other ids once `lie` is set, so that what is cached is wrong. */
  function changing(): Tokenizer & { lie: boolean } {
    const one: Tokenizer & { lie: boolean } = {
      ...tokenizer,
      lie: false,
      encodeSoon: (text: string) => tokenizer.encode(text).map((id) => (one.lie ? id ^ 1 : id)),
    };
    return one;
  }

  test.each<["l0" | "l1", number]>([
    ["l0", 3],
    ["l1", 4],
  ])("finds a wrong answer of %s, gives the right one, and switches both levels off", (name, turns) => {
    const memory = createTokenizerCache(settings);
    const told: CacheMismatch[] = [];
    const one = changing();
    const cached = cachedTokenizer(one, memory, { verifyShare: 1, onMismatch: (mismatch) => told.push(mismatch) });
    const other = cachedTokenizer(one, memory, never);
    cached.encode(chat(3));
    cached.encode(chat(3));
    expect(told).toEqual([]);
    one.lie = true;
    expect(cached.encode(chat(turns))).toEqual(one.encodeSoon(chat(turns)) as Uint32Array);
    expect(told).toMatchObject([{ level: name, mismatches: 1 }]);
    expect(cacheStats(memory).map(({ enabled }) => enabled)).toEqual([false, false]);
    expect(level(memory, name).mismatches).toBe(1);
    const before = cacheStats(memory);
    for (const wrapper of [cached, other]) wrapper.encode(chat(3));
    other.remember(chat(6), tokenizer.encode(chat(6)));
    expect(cacheStats(memory)).toEqual(before);
    expect(told.length).toBe(1);
  });

  test("looks at the share of hits that it is told to", () => {
    let checks = 0;
    const counting: Tokenizer = {
      ...tokenizer,
      encodeSoon(text) {
        checks++;
        return tokenizer.encodeSoon(text);
      },
    };
    const memory = createTokenizerCache(settings);
    const cached = cachedTokenizer(counting, memory, { verifyShare: 0.1, random: random(3) });
    for (let i = 0; i < 2001; i++) cached.encode(chat(3));
    expect(level(memory, "l0").hits).toBe(2000);
    expect(checks).toBeGreaterThan(150);
    expect(checks).toBeLessThan(250);
  });
});

describe("levels", () => {
  test("either one works without the other", () => {
    for (const [l0, l1] of [
      [true, false],
      [false, true],
    ] as const) {
      const memory = createTokenizerCache({ ...settings, l0, l1 });
      const cached = cachedTokenizer(tokenizer, memory, never);
      for (const turns of [3, 3, 4]) expect(cached.encode(chat(turns))).toEqual(tokenizer.encode(chat(turns)));
      expect([level(memory, "l0").hits, level(memory, "l1").hits]).toEqual(l0 ? [1, 0] : [0, 2]);
      expect(level(memory, l0 ? "l1" : "l0")).toMatchObject({ enabled: false, misses: 0, insertions: 0, bytes: 0 });
      expect(level(memory, l0 ? "l0" : "l1").bytes).toBeGreaterThan(20_000);
    }
  });

  test("without memory nothing is cached, and everything works", () => {
    const cached = cachedTokenizer(tokenizer, undefined, never);
    expect(cached.encode(chat(3))).toEqual(tokenizer.encode(chat(3)));
    cached.remember(chat(3), new Uint32Array(1));
    expect(cached.encodeSoon(chat(3))).toEqual(tokenizer.encode(chat(3)));
    expect([cached.kind, cached.vocabSize, cached.longestToken]).toEqual([
      tokenizer.kind,
      tokenizer.vocabSize,
      tokenizer.longestToken,
    ]);
  });
});

test("texts that differ in lone surrogates, or in what they are replaced by, are one text", () => {
  const memory = createTokenizerCache(settings);
  const cached = cachedTokenizer(tokenizer, memory, never);
  const text = "word \ud800 ".repeat(200);
  expect(cached.encode(text)).toEqual(tokenizer.encode(text));
  expect(cached.encode(text.toWellFormed())).toEqual(tokenizer.encode(text));
  expect(level(memory, "l0").hits).toBe(1);
});

test("an idle cache takes no memory; a full one no more than its size", () => {
  const { stdout, stderr } = Bun.spawnSync([process.execPath, join(import.meta.dir, "memory-program.ts")]);
  expect(stderr.toString()).toBe("");
  const { idle, full, bytes } = JSON.parse(stdout.toString()) as Record<string, number>;
  expect(idle).toBeLessThan(12e6); // eight of 52 MB
  expect(bytes).toBeGreaterThan(52e6);
  expect(full! - idle!).toBeGreaterThan(45e6);
  expect(full! - idle!).toBeLessThan(70e6);
});
