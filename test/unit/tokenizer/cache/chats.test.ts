/** Chats that grow, branch and come again, over all kinds of small tokenizers, in a large cache and in one that evicts all the time. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createTokenizerCache } from "../../../../src/tokenizer/cache/board.ts";
import { cachedTokenizer } from "../../../../src/tokenizer/cache/cached-tokenizer.ts";
import { cacheStats } from "../../../../src/tokenizer/cache/stats.ts";
import { Rng } from "../../../golden/tokenizer/strings.ts";
import { smallTokenizer } from "../fixtures.ts";
import { expectSame, filler, sameIds } from "./chats.ts";

const golden = join(import.meta.dir, "../../../golden/tokenizer");
const names = readdirSync(join(golden, "small")).map((file) => file.replace(".json", ""));
const specialsOf = (name: string): string[] =>
  JSON.parse(readFileSync(join(golden, `${name}.golden.json`), "utf8")).specials;

test.each(names)("%s", async (name) => {
  const tokenizer = await smallTokenizer(name);
  const specials = specialsOf(name);
  const random = new Rng(41);
  const memories = [4 << 20, 200_000].map((bytes) =>
    createTokenizerCache({ l0: true, l1: true, l0Entries: 50, bytes }),
  );
  const cached = memories.map((memory) => cachedTokenizer(tokenizer, memory, { verifyShare: 0 }));
  const system = filler(random, specials, 1500);
  const chats = Array.from({ length: 6 }, () => system);
  let later = 0;
  const rounds = tokenizer.kind === "kernel" ? 120 : 12;
  for (let round = 0; round < rounds; round++) {
    const i = random.below(chats.length);
    const kind = random.below(8);
    if (kind === 0)
      chats[i] = chats[random.below(chats.length)]!; // a branch
    else if (kind === 1 || chats[i]!.length > 40_000) chats[i] = system;
    else chats[i] += filler(random, specials, 100 + random.below(3000)) + random.pick(specials);
    const asText = tokenizer.kind === "kernel" && random.below(6) === 0;
    for (const one of cached) {
      expectSame(tokenizer, one, chats[i]!);
      const options = { addSpecialTokens: random.below(2) === 0, ...(asText && { specialAsText: true }) };
      const soon = one.encodeSoon(chats[i]!, options);
      if (soon === undefined) later++;
      else expect(sameIds(tokenizer.encode(chats[i]!, options), soon)).toBe(true);
    }
  }
  expect(later).toBeLessThan(rounds); // of twice as many: long runs of marks take their time
  const [large, small] = memories.map((memory) => cacheStats(memory));
  expect(large?.[0]?.hits).toBeGreaterThan(rounds / 2);
  expect(large?.[0]?.mismatches).toBe(0);
  if (tokenizer.kind !== "kernel") return;
  expect(small?.[0]?.evictions).toBeGreaterThan(30);
  if (tokenizer.buffer !== undefined) {
    expect(large?.[1]?.hits).toBeGreaterThan(rounds / 5);
    expect(small?.[1]?.hits).toBeGreaterThan(0);
    expect(small?.[1]?.evictions).toBeGreaterThan(0);
  }
});

describe("one chat", () => {
  test("never encodes its past again", async () => {
    const tokenizer = await smallTokenizer("cl100k");
    const memory = createTokenizerCache({ l0: true, l1: true, l0Entries: 100, bytes: 8 << 20 });
    const encoded: number[] = [];
    const { buffer } = tokenizer;
    const watched = {
      ...tokenizer,
      buffer: buffer && {
        ...buffer,
        encodeFrom(from: number) {
          encoded.push(text.length - from);
          return buffer.encodeFrom(from);
        },
      },
    };
    const cached = cachedTokenizer(watched, memory, { verifyShare: 0 });
    let text = "";
    for (let turn = 0; turn < 40; turn++) {
      text += `<|begin|>user\n${`word ${turn} `.repeat(turn % 3 === 0 ? 30 : 450)}<|end|>`;
      expectSame(tokenizer, cached, text);
    }
    const longest = "word 39 ".length * 450 + 30;
    expect(encoded.length).toBe(39); // the first turn alone is too short to be kept
    // the new turn, and what lies behind the last cut that was kept
    expect(Math.max(...encoded.slice(2))).toBeLessThan(longest + 3072 + longest);
    expect(encoded.slice(2).reduce((sum, n) => sum + n, 0)).toBeLessThan(2.5 * text.length);
  });
});
