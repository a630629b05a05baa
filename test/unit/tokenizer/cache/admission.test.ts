/** What is stored where nothing comes again, and when something does. */
import { expect, test } from "bun:test";
import { createTokenizerCache } from "../../../../src/tokenizer/cache/board.ts";
import { cachedTokenizer } from "../../../../src/tokenizer/cache/cached-tokenizer.ts";
import { cacheStats } from "../../../../src/tokenizer/cache/stats.ts";
import { smallTokenizer } from "../fixtures.ts";

const tokenizer = await smallTokenizer("cl100k");
const turn = (name: string): string => `<|begin|>user\n${`${name} `.repeat(2000)}<|end|>\n`;
const lone = (i: number): string => `text ${i} `.repeat(40);

function cache() {
  const memory = createTokenizerCache({ l0: true, l1: true, l0Entries: 10_000, bytes: 32 << 20 });
  const cached = cachedTokenizer(tokenizer, memory, { verifyShare: 0 });
  const encode = (text: string): void => expect(cached.encode(text)).toEqual(tokenizer.encode(text));
  const stored = (): number => cacheStats(memory)[0]!.insertions;
  const hits = (): number[] => cacheStats(memory).map((level) => level.hits);
  return { encode, stored, hits };
}

/** A cache of which so many texts have made sure that nothing comes again. */
function tired() {
  const made = cache();
  let i = 0;
  for (; made.stored() === i; i++) made.encode(lone(i));
  return { ...made, seen: i };
}

test("of thousands of texts that do not come again the first are stored, the others noted", () => {
  const { encode, stored, seen } = tired();
  expect(seen).toBeGreaterThan(500);
  for (let i = 0; i < 200; i++) encode(lone(1_000_000 + i));
  expect(stored()).toBe(seen - 1);
});

test("a text that comes again then is stored, and so are others for a while", () => {
  const { encode, stored, hits, seen } = tired();
  const before = stored();
  encode("again ".repeat(100));
  expect(stored()).toBe(before);
  encode("again ".repeat(100));
  expect([stored(), hits()]).toEqual([before + 1, [0, 0]]);
  encode("again ".repeat(100));
  expect(hits()).toEqual([1, 0]);
  for (let i = 0; i < 500; i++) encode(lone(seen + 1 + i));
  expect(stored()).toBeGreaterThan(before + 8);
  expect(stored()).toBeLessThan(before + 100);
});

test("a chat that grows then is stored in its second turn, and taken from the cache in its third", () => {
  const { encode, stored, hits } = tired();
  const before = stored();
  encode(turn("a"));
  expect(stored()).toBe(before);
  encode(turn("a") + turn("b"));
  expect([stored(), hits()]).toEqual([before + 1, [0, 0]]);
  encode(turn("a") + turn("b") + turn("c"));
  expect(hits()).toEqual([0, 1]);
});

test("where one text of ten comes again, all are stored", () => {
  const { encode, stored } = cache();
  for (let i = 0; i < 3000; i++) encode(i % 10 === 9 ? lone(i - 5) : lone(i));
  expect(stored()).toBe(2700);
});
