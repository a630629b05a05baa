/** Cuts: the ids of the parts, joined, are those of the whole. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { TextBuffer } from "../../../src/tokenizer/tokenizer.ts";
import { Rng, string } from "../../golden/tokenizer/strings.ts";
import { smallTokenizer } from "./fixtures.ts";

const NAMES = [
  "cl100k",
  "cl100k_nfc",
  "normalized",
  "seed",
  "gaps",
  "o200k",
  "kimi",
  "tekken",
  "deepseek",
  "gpt2",
  "gemma",
  "prepend",
  "metaspace_always",
];
const specialsOf = (name: string): string[] =>
  JSON.parse(readFileSync(join(import.meta.dir, `../../golden/tokenizer/${name}.golden.json`), "utf8")).specials;

describe.each(NAMES)("%s", async (name) => {
  const tokenizer = await smallTokenizer(name);
  const specials = specialsOf(name);
  const buffer = tokenizer.buffer as TextBuffer;
  const random = new Rng(77);
  /** Texts as of a chat, with more special tokens than the golden strings have. */
  const texts = Array.from({ length: 400 }, () =>
    Array.from({ length: 4 }, () => string(random, specials) + random.pick(specials)).join(""),
  );

  test("from any cut on the rest has the ids of the whole", () => {
    let cuts = 0;
    for (const text of texts) {
      const whole = tokenizer.encode(text);
      buffer.write(text);
      const all = buffer.encodeFrom(0)!;
      expect(Array.from(all.ids)).toEqual(Array.from(whole));
      const pairs = Array.from(all.cuts);
      const bytes = Buffer.from(text.toWellFormed());
      for (let i = 0; i < pairs.length; i += 2) {
        const [at, count] = [pairs[i]!, pairs[i + 1]!];
        cuts++;
        expect(tokenizer.encode(bytes.subarray(0, at).toString())).toEqual(whole.subarray(0, count));
        buffer.write(text);
        expect(Array.from(buffer.encodeFrom(at)!.ids)).toEqual(Array.from(whole.subarray(count)));
      }
    }
    expect(cuts).toBeGreaterThan(300);
  });

  test("cuts are found one after the other as in encoding", () => {
    for (const text of texts) {
      const written = buffer.write(text);
      expect(Buffer.from(written).toString()).toBe(text.toWellFormed());
      const found: number[] = [];
      for (let at = buffer.nextCut(0); at >= 0; at = buffer.nextCut(at)) found.push(at);
      expect(Array.from(buffer.encodeFrom(0)!.cuts).filter((_, i) => i % 2 === 0)).toEqual(found);
    }
  });
});

test("what was looked for in one text is not taken for another of the same length", async () => {
  const tokenizer = await smallTokenizer("cl100k");
  const buffer = tokenizer.buffer as TextBuffer;
  const special = "<|begin|>";
  const texts = [
    `${special}plain words`,
    `plain ${special}words`,
    `plain words${special}`,
    "plain words".padEnd(20, "!"),
  ];
  const right = texts.map((text) => Array.from(tokenizer.encode(text)));
  for (const looked of texts)
    for (const [i, text] of texts.entries()) {
      buffer.write(looked);
      buffer.nextCut(0);
      buffer.write(text);
      expect(Array.from(buffer.encodeFrom(0)!.ids)).toEqual(right[i]!);
    }
});

test("a text that NFC changes has the same ids when it is encoded again, also if it ends in ASCII", async () => {
  const tokenizer = await smallTokenizer("cl100k_nfc");
  const [special] = specialsOf("cl100k_nfc");
  const text = `cafe\u0301 ${special} and plain words`;
  const buffer = tokenizer.buffer as TextBuffer;
  buffer.write(text);
  const [once, again] = [Array.from(buffer.encodeFrom(0)!.ids), Array.from(buffer.encodeFrom(0)!.ids)];
  expect(once).toEqual(Array.from(tokenizer.encode(text.normalize("NFC"))));
  expect(again).toEqual(once);
});

test("no cuts where the start of a text is treated apart, nor behind what takes the space after it", async () => {
  expect((await smallTokenizer("metaspace_first")).buffer).toBeUndefined();
  const { buffer } = await smallTokenizer("cl100k_strip");
  for (const [token, cut] of [
    ["<|begin|>", true],
    ["<|end|>", false],
    ["<think>", true],
  ] as const) {
    buffer?.write(`${token} x`);
    expect((buffer?.nextCut(0) ?? -1) >= 0).toBe(cut);
  }
});
