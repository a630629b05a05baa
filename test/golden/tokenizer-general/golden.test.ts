/** The general tokenizer against the Rust `tokenizers` library, part by part (see make_golden.py). */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { buildGeneral } from "../../../src/tokenizer/general/build.ts";
import { openBlock } from "../../../src/tokenizer/general/memory.ts";
import { openGeneral } from "../../../src/tokenizer/general/open.ts";
import { preTokenizer } from "../../../src/tokenizer/general/pre-tokenizers.ts";
import { property } from "../../../src/tokenizer/general/properties.ts";
import type { EncodeOptions, Tokenizer } from "../../../src/tokenizer/tokenizer.ts";
import { Rng } from "../tokenizer/strings.ts";
import { classes, expressions, golden, numbers, patterns, points, text, variant, variantJson } from "./variants.ts";

const open = (json: Uint8Array): Tokenizer => openGeneral(buildGeneral(json));
const line = (ids: Uint32Array): string => `[${ids.join(",")}]\n`;

for (const { name, base, patch, ...wanted } of golden.variants) {
  test(name, () => {
    const tokenizer = open(variantJson(base, patch));
    expect(tokenizer.vocabSize).toBe(wanted.vocab_size);
    for (const { s, ids } of wanted.cases) expect([s, [...tokenizer.encode(s)]]).toEqual([s, [...ids]]);

    const specials = ((patch["added_tokens"] ?? []) as { content: string }[]).map((t) => t.content);
    const rng = new Rng(golden.seed);
    const texts = Array.from({ length: golden.count }, (_, i) => text(rng, i, specials));
    const sha = (options: EncodeOptions): string => {
      const hash = createHash("sha256");
      for (const s of texts) hash.update(line(tokenizer.encode(s, options)));
      return hash.digest("hex");
    };
    expect(sha({})).toBe(wanted.ids_sha256);
    expect(sha({ addSpecialTokens: true })).toBe(wanted.with_sha256);
    expect(sha({ specialAsText: true })).toBe(wanted.plain_sha256);

    for (const { ids, keep, skip = keep } of wanted.decode) {
      for (const [skipSpecialTokens, whole] of [
        [false, keep],
        [true, skip],
      ] as const) {
        const decoder = tokenizer.decoder({ skipSpecialTokens });
        const decoded = (): string => ids.map((id) => decoder.push(id)).join("") + decoder.end();
        expect([ids, decoded()]).toEqual([ids, whole]);
        expect(decoded()).toBe(whole); // a decoder can be used again
      }
    }
  });
}

describe("code points of the planes 0, 1 and 14", () => {
  const codes: number[] = [];
  for (const plane of [0, 1, 14])
    for (let c = plane << 16; c < (plane + 1) << 16; c++) if (c < 0xd800 || c > 0xdfff) codes.push(c);
  for (const [name, wanted] of Object.entries(points)) {
    test(name, () => {
      const tokenizer = open(variant(name));
      const blocks: string[] = [];
      for (let at = 0; at < codes.length; at += 8192) {
        const hash = createHash("sha256");
        const end = Math.min(at + 8192, codes.length);
        for (let i = at; i < end; i += 32) {
          const chars = codes.slice(i, Math.min(i + 32, end)).map((c) => String.fromCodePoint(c));
          hash.update(line(tokenizer.encode(`a${chars.join("a")}`)));
        }
        blocks.push(hash.digest("hex").slice(0, 16));
      }
      expect(blocks).toEqual([...wanted]);
    });
  }
});

describe("character classes", () => {
  test.each(Object.entries(classes))("%s", (name, wanted) => {
    const ranges = property(name)!;
    const codes: number[] = [];
    for (let i = 0; i < ranges.length; i += 2)
      for (let c = ranges[i]!; c < ranges[i + 1]!; c++) if (c < 0xd800 || c > 0xdfff) codes.push(c);
    expect(createHash("sha256").update(codes.join()).digest("hex")).toBe(wanted);
  });
});

test("scores are read as the library reads them", () => {
  const vocab = numbers.map(([text], i) => `["t${i}",${text}]`).join();
  const memory = buildGeneral(Buffer.from(`{"model":{"type":"Unigram","unk_id":0,"vocab":[${vocab}]}}`));
  expect([...openBlock(memory).tables.get("scores")!]).toEqual(numbers.map(([, value]) => value));
  expect(numbers.some(([text, value]) => Number(text) !== value)).toBe(true);
});

describe("patterns", () => {
  const rng = new Rng(golden.seed);
  const texts = Array.from({ length: golden.count }, (_, i) => text(rng, i, ["<s>", "foo"]));
  test.each(expressions.map((expression, i) => [expression, patterns[i]] as const))("%s", (expression, wanted) => {
    const split = preTokenizer({ type: "Split", pattern: { Regex: expression }, behavior: "Isolated", invert: false });
    const hash = createHash("sha256");
    for (const s of texts) {
      const pieces = s === "" ? [] : split({ texts: [s], atStart: undefined }).texts;
      hash.update(`${pieces.map((p) => `${p}\x1e`).join("")}\x1f`);
    }
    expect(hash.digest("hex")).toBe(wanted!);
  });
});
