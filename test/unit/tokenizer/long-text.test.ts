import { describe, expect, test } from "bun:test";
import { eachPart, maySplit } from "../../../src/tokenizer/long-text.ts";
import { Rng, string } from "../../golden/tokenizer/strings.ts";
import { smallTokenizer } from "./fixtures.ts";

const cut = (text: string, size: number): string[] => {
  const parts: string[] = [];
  eachPart(text, (part) => parts.push(part), size);
  return parts;
};

describe("cutting long texts", () => {
  test("gives all of the text, in parts of about the size asked", () => {
    expect(cut("ab cd ef gh", 4)).toEqual(["ab", " cd", " ef", " gh"]);
    expect(cut("中文中文中文中文 a b", 3)).toEqual(["中文中文中文中文 a", " b"]);
    expect(cut("no-cut-here-1 2", 3)).toEqual(["no-cut-here-1 2"]);
    expect(cut("", 3)).toEqual([""]);
  });
  for (const name of [
    "cl100k",
    "cl100k_nfc",
    "normalized",
    "seed",
    "gaps",
    "o200k",
    "kimi",
    "tekken",
    "marks",
    "deepseek",
    "gpt2",
    "gpt2_digits",
  ]) {
    test(`does not change the ids of ${name}`, async () => {
      const tokenizer = await smallTokenizer(name);
      const rng = new Rng(77);
      let parts = 0;
      for (let i = 0; i < 2000; i++) {
        const text = string(rng, ["<think>", "<|end|>"]);
        const ids = cut(text, 2 + (i % 5)).map((part) => [...tokenizer.encode(part)]);
        parts += ids.length;
        expect([text, ids.flat()]).toEqual([text, [...tokenizer.encode(text)]]);
      }
      expect(parts).toBeGreaterThan(5000);
    });
  }
  test("is not done across added tokens or merges", () => {
    const none = (): boolean => false;
    expect(maySplit(["<think>", "x\n", " y"], none)).toBe(true);
    expect(maySplit(["place holder"], none)).toBe(false);
    expect(maySplit([], (a, b) => a === 0x7a && b === 0x20)).toBe(false);
  });
  test("keeps a megabyte's ids the same", async () => {
    const tokenizer = await smallTokenizer("o200k");
    const unit = "Some words, 123 and 中文 <think>it's\n\n  e\u0301</think>\n";
    const one = tokenizer.encode(unit);
    const long = unit.repeat(20_000);
    const ids = tokenizer.encode(long);
    expect(ids.length).toBe(one.length * 20_000);
    for (let i = 0; i < ids.length; i++) if (ids[i] !== one[i % one.length]) throw new Error(`differs at ${i}`);
  });
});
