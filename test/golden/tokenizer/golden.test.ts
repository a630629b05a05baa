/** Ids and texts against the Rust `tokenizers` library (see make_golden.py and make_small.py). */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";
import type { Tokenizer } from "../../../src/tokenizer/tokenizer.ts";
import { Rng, string } from "./strings.ts";

interface Golden {
  readonly file_sha256: string;
  readonly seed: number;
  readonly specials: readonly string[];
  readonly vocab_size: number;
  readonly batches: readonly { readonly strings_sha256: string; readonly ids_sha256: string }[];
  readonly cases: readonly { readonly s: string; readonly ids: readonly number[]; readonly plain?: readonly number[] }[];
  readonly decode: readonly { readonly ids: readonly number[]; readonly keep: string; readonly skip?: string }[];
}

const sha = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const small = (name: string): Uint8Array => readFileSync(join(import.meta.dir, "small", `${name}.json`));
const qwen3 = (await demoModelFiles()).get("tokenizer.json") as Uint8Array;

const TOKENIZERS: { name: string; kind: Tokenizer["kind"]; json: Uint8Array  }[] = [
  { name: "qwen3", kind: "kernel", json: qwen3 },
  { name: "cl100k", kind: "kernel", json: small("cl100k") },
  { name: "cl100k_nfc", kind: "kernel", json: small("cl100k_nfc") },
  { name: "possessive", kind: "kernel", json: small("possessive") },
  { name: "seed", kind: "kernel", json: small("seed") },
  { name: "normalized", kind: "kernel", json: small("normalized") },
  { name: "kimi", kind: "kernel", json: small("kimi") },
  { name: "o200k", kind: "kernel", json: small("o200k") },
  { name: "marks", kind: "kernel", json: small("marks") },
  { name: "tekken", kind: "kernel", json: small("tekken") },
  { name: "deepseek", kind: "kernel", json: small("deepseek") },
  { name: "gpt2", kind: "kernel", json: small("gpt2") },
  { name: "gpt2_digits", kind: "kernel", json: small("gpt2_digits") },
  { name: "gaps", kind: "kernel", json: small("gaps") },
  { name: "gemma", kind: "kernel", json: small("gemma") },
  { name: "prepend", kind: "kernel", json: small("prepend") },
  { name: "metaspace_first", kind: "kernel", json: small("metaspace_first") },
  { name: "metaspace_always", kind: "kernel", json: small("metaspace_always") },
  { name: "cl100k_strip", kind: "kernel", json: small("cl100k_strip") },
  { name: "prepend_strip", kind: "kernel", json: small("prepend_strip") },
  { name: "wordpiece", kind: "general", json: small("wordpiece") },
];

for (const { name, kind, json } of TOKENIZERS) {
  describe(name, async () => {
    const golden = JSON.parse(readFileSync(join(import.meta.dir, `${name}.golden.json`), "utf8")) as Golden;
    const tokenizer = openTokenizer(await loadTokenizer(new Map([["tokenizer.json", json]])));
    const decode = (ids: readonly number[], skipSpecialTokens: boolean): string => {
      const decoder = tokenizer.decoder({ skipSpecialTokens });
      return ids.map((id) => decoder.push(id)).join("") + decoder.end();
    };

    test("is the tokenizer that the golden values are of", () => {
      expect(sha(json)).toBe(golden.file_sha256);
      expect(tokenizer.kind).toBe(kind);
      expect(tokenizer.vocabSize).toBe(golden.vocab_size);
    });
    test("encodes the cases", () => {
      for (const { s, ids } of golden.cases) expect([s, [...tokenizer.encode(s)]]).toEqual([s, [...ids]]);
    });
    test("takes special tokens in the cases for text on demand", () => {
      expect(golden.cases.filter(({ plain }) => plain).length).toBeGreaterThan(1);
      for (const { s, ids, plain = ids } of golden.cases)
        expect([s, [...tokenizer.encode(s, { specialAsText: true })]]).toEqual([s, [...plain]]);
    });
    test("encodes thousands of random strings", () => {
      const rng = new Rng(golden.seed);
      for (const batch of golden.batches) {
        const strings = createHash("sha256");
        const ids = createHash("sha256");
        for (let i = 0; i < 1000; i++) {
          const s = string(rng, golden.specials);
          strings.update(`${s}\n`);
          ids.update(`[${tokenizer.encode(s).join(",")}]\n`);
        }
        expect(strings.digest("hex")).toBe(batch.strings_sha256);
        expect(ids.digest("hex")).toBe(batch.ids_sha256);
      }
    });
    test("decodes in a stream what the library decodes at once", () => {
      expect(golden.decode.length).toBeGreaterThan(15);
      for (const { ids, keep, skip = keep } of golden.decode) {
        expect(decode(ids, false)).toBe(keep);
        expect(decode(ids, true)).toBe(skip);
      }
    });
  });
}
