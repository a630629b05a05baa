/** Texts that a thread keeps at hand: those that come again and again, with ids of their own, no longer than the shared cache has them. */
import { expect, test } from "bun:test";
import { createTokenizerCache, openCacheBoard } from "../../../../src/tokenizer/cache/board.ts";
import { cachedTokenizer } from "../../../../src/tokenizer/cache/cached-tokenizer.ts";
import { HotTexts } from "../../../../src/tokenizer/cache/hot-texts.ts";
import { cacheStats } from "../../../../src/tokenizer/cache/stats.ts";
import { smallTokenizer } from "../fixtures.ts";

const tokenizer = await smallTokenizer("cl100k");
const board = () => openCacheBoard(createTokenizerCache({ l0: true, l1: true, l0Entries: 100, bytes: 4096 }));
const ids = Uint32Array.of(1, 2, 3);

test("what was seen twice in a row is kept, and given as a copy", () => {
  const hot = new HotTexts(board());
  hot.see("text", false, 0, ids);
  expect(hot.idsOf("text", false)).toBeUndefined();
  const mine = ids.slice();
  hot.see("text", false, 0, mine);
  mine.fill(0);
  hot.idsOf("text", false)!.fill(0);
  expect(hot.idsOf(`te${"xt"}`, false)).toEqual(ids);
  expect(hot.idsOf("text", true)).toBeUndefined();
  expect(hot.idsOf("tex", false)).toBeUndefined();
  expect(hot.idsOf("texT", false)).toBeUndefined();
});

test("texts that take turns are not kept, and leave a kept one be", () => {
  const memory = board();
  const hot = new HotTexts(memory);
  for (let i = 0; i < 4; i++) memory.append(Buffer.from("text"), ids);
  for (let i = 0; i < 2; i++) hot.see("kept", false, 5, ids);
  for (let i = 0; i < 10; i++) hot.see(`tex${i % 2}`, false, i % 2, Uint32Array.of(9));
  expect([hot.idsOf("tex0", false), hot.idsOf("tex1", false)]).toEqual([undefined, undefined]);
  expect(hot.idsOf("kept", false)).toEqual(ids);
});

test("long texts, and those of many ids, are not kept", () => {
  const hot = new HotTexts(board());
  for (const [text, count] of [
    ["a".repeat(100_000), 3],
    ["b", 100_000],
  ] as const) {
    for (let i = 0; i < 3; i++) hot.see(text, false, 0, new Uint32Array(count));
    expect(hot.idsOf(text, false)).toBeUndefined();
  }
});

test("a text is kept as long as its record is there", () => {
  const memory = board();
  const hot = new HotTexts(memory);
  const at = memory.append(Buffer.from("text"), ids);
  for (let i = 0; i < 2; i++) hot.see("text", false, at, ids);
  expect(hot.idsOf("text", false)).toEqual(ids);
  for (let i = 0; i < 500; i++) memory.append(Buffer.from("text"), ids);
  expect(hot.idsOf("text", false)).toBeUndefined();
});

test("in front of the shared cache each hit counts, with the right ids, until the cache is switched off", () => {
  const memory = createTokenizerCache({ l0: true, l1: true, l0Entries: 100, bytes: 1 << 20 });
  const one = cachedTokenizer(tokenizer, memory, { verifyShare: 0 });
  const text = `<|begin|>${"word ".repeat(500)}<|end|>`;
  const other = `<|begin|>${"ward ".repeat(500)}<|end|>`;
  for (let i = 0; i < 20; i++) {
    for (const [t, specialAsText] of [
      [text, false],
      [text, true],
      [i % 3 ? text : other, false],
    ] as const) {
      const got = one.encode(t, { specialAsText });
      expect(got).toEqual(tokenizer.encode(t, { specialAsText }));
      got.fill(7);
    }
  }
  expect(cacheStats(memory)[0]).toMatchObject({ hits: 57, misses: 3 });
  openCacheBoard(memory).switchOff();
  expect(one.encode(text)).toEqual(tokenizer.encode(text));
  expect(cacheStats(memory)[0]!.hits).toBe(57);
});
