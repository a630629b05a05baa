/** Texts that are stored after their ids were given. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createTokenizerCache } from "../../../../src/tokenizer/cache/board.ts";
import { cachedTokenizer } from "../../../../src/tokenizer/cache/cached-tokenizer.ts";
import { cacheStats } from "../../../../src/tokenizer/cache/stats.ts";
import { Rng } from "../../../golden/tokenizer/strings.ts";
import { smallTokenizer } from "../fixtures.ts";
import { filler, sameIds } from "./chats.ts";

const tokenizer = await smallTokenizer("cl100k");
const turn = (i: number): string => `<|begin|>user\n${`word${i} `.repeat(520)}<|end|>\n`;
const chat = (turns: number): string => Array.from({ length: turns }, (_, i) => turn(i)).join("");

function cache() {
  const memory = createTokenizerCache({ l0: true, l1: true, l0Entries: 1000, bytes: 8 << 20 });
  const asked: (() => void)[] = [];
  const options = { verifyShare: 0, later: (store: () => void) => void asked.push(store) };
  const cached = cachedTokenizer(tokenizer, memory, options);
  const pause = (): void => {
    for (const store of asked.splice(0)) store();
  };
  const encode = (text: string): void => expect(cached.encode(text)).toEqual(tokenizer.encode(text));
  const [l0, l1] = [() => cacheStats(memory)[0]!, () => cacheStats(memory)[1]!];
  return { memory, asked, options, cached, encode, pause, l0, l1 };
}

test("a text is stored in the pause, once, and its miss is counted", () => {
  const { cached, asked, pause, l0, l1 } = cache();
  cached.encode(chat(3));
  expect([l0().insertions, l0().misses, asked.length]).toEqual([0, 0, 1]);
  pause();
  expect([l0().insertions, l0().misses, l1().misses, l1().insertions]).toEqual([1, 1, 1, 2]);
  pause();
  expect(cached.encode(chat(3))).toEqual(tokenizer.encode(chat(3)));
  expect([l0().insertions, l0().hits, asked.length]).toEqual([1, 1, 0]);
});

test("what comes before the pause finds it stored, and asks for no second one", () => {
  const { cached, asked, l0, l1 } = cache();
  const soon = cached.encodeSoon(chat(3));
  const again = cached.encodeSoon(chat(3));
  expect(again).toEqual(soon);
  const right = tokenizer.encode(chat(4)); // it writes over the buffer, in which nothing waits
  expect(cached.encode(chat(4))).toEqual(right);
  cached.encode("short");
  expect(asked.length).toBe(1);
  expect([l0().insertions, l0().hits, l1().hits]).toEqual([2, 1, 1]);
});

test("ids that the caller writes over before the pause are stored as they were", () => {
  const { cached, pause } = cache();
  for (let turns = 3; turns < 6; turns++) {
    cached.encode(chat(turns)).fill(0);
    pause();
    expect(cached.encode(chat(turns))).toEqual(tokenizer.encode(chat(turns)));
  }
});

test("a text whose place in the buffer another has taken is not stored", () => {
  const { cached, pause, l0 } = cache();
  for (const use of [
    () => tokenizer.encode("another"),
    () => tokenizer.encodeSoon(chat(2)),
    () => tokenizer.buffer?.write("another"),
    () => tokenizer.buffer?.encodeFrom(0),
  ]) {
    cached.encode(chat(3));
    use();
    pause();
    expect(l0()).toMatchObject({ insertions: 0, hits: 0 });
  }
  cached.encode(chat(3));
  pause();
  expect(l0()).toMatchObject({ misses: 5, insertions: 1 });
});

test("a text that grew out of one that is gone when the pause comes is not stored", () => {
  const { memory, cached, encode, pause, l0, l1 } = cache();
  cached.encode(chat(3));
  pause();
  const ids = tokenizer.encode(chat(3));
  const words = new Uint32Array(memory);
  const at = words.findIndex((_, i) => ids.subarray(0, 8).every((id, k) => words[i + k] === id));
  cached.encode(chat(4));
  expect(l1().hits).toBe(1);
  words[at + 5]! ^= 1;
  pause();
  expect(l0()).toMatchObject({ misses: 2, insertions: 1 });
  for (let turns = 3; turns < 6; turns++) encode(chat(turns));
  expect(l1().hits).toBeLessThan(3);
});

describe.each(["cl100k", "cl100k_nfc", "o200k", "gemma", "prepend", "metaspace_always"])("%s", async (name) => {
  const one = await smallTokenizer(name);
  const golden = join(import.meta.dir, `../../../golden/tokenizer/${name}.golden.json`);
  const specials = JSON.parse(readFileSync(golden, "utf8")).specials as string[];

  test("chats that grow and branch, with pauses at any time, in a cache that evicts and one that does not", () => {
    const random = new Rng(17);
    for (const bytes of [4 << 20, 200_000]) {
      const memory = createTokenizerCache({ l0: true, l1: true, l0Entries: 50, bytes });
      let asked: (() => void)[] = [];
      const later = (store: () => void): void => void asked.push(store);
      const threads = [0, 1].map(() => cachedTokenizer(one, memory, { verifyShare: 0, later }));
      const system = filler(random, specials, 3100) + specials[0];
      const chats = Array.from({ length: 4 }, () => system);
      for (let round = 0; round < 150; round++) {
        const i = random.below(chats.length);
        if (random.below(8) === 0 || chats[i]!.length > 40_000) chats[i] = system;
        else if (random.below(3) > 0) chats[i] += filler(random, specials, random.below(3000)) + random.pick(specials);
        const options = { specialAsText: random.below(8) === 0 };
        // first, as a text that waits must not be in the way, nor lose its place to what the test encodes
        const got = random.pick(threads).encode(chats[i]!, options);
        if (random.below(2) === 0) for (const store of asked.splice(0)) store();
        if (random.below(4) > 0) continue;
        expect(sameIds(got, one.encode(chats[i]!, options))).toBe(true);
      }
      asked = [];
      const stats = cacheStats(memory);
      expect(stats.map(({ mismatches }) => mismatches)).toEqual([0, 0]);
      expect(stats[0]!.hits).toBeGreaterThan(5);
    }
  });
});
