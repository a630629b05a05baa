/** Long pieces against the Rust `tokenizers` library (see make_long.py). */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";
import { Rng } from "./strings.ts";

const ALPHABETS =
  "ab|a|abc|etaoinshrdlu|-|=-|_|éa|ab12|中文字的|、。|a |\n| |\t |ü|0|Aa|\u0301a|한국|x✓|eeeeeeeet|😀👍|▁".split("|");
const LENGTHS = [500, 513, 600, 1100, 2500, 9000];
const golden = JSON.parse(readFileSync(join(import.meta.dir, "long.golden.json"), "utf8")) as {
  strings_sha256: string;
  ids_sha256: Record<string, string>;
};

function text(r: Rng, alphabet: readonly string[], length: number, mode: number): string {
  let out: string[] = [];
  if (mode === 0) for (let i = 0; i < length; i++) out.push(r.pick(alphabet));
  else if (mode === 1) {
    const unit = Array.from({ length: 1 + r.below(70) }, () => r.pick(alphabet));
    while (out.length < length) out = out.concat(unit);
  } else
    while (out.length < length) {
      const c = r.pick(alphabet);
      out.push(...Array<string>(1 + r.below(200)).fill(c));
    }
  return out.slice(0, length).join("");
}

const rng = new Rng(11);
const texts = ALPHABETS.flatMap((a) => LENGTHS.flatMap((n) => [0, 1, 2].map((mode) => text(rng, [...a], n, mode))));

test("the texts are those of the golden values", () => {
  expect(createHash("sha256").update(texts.join("\n")).digest("hex")).toBe(golden.strings_sha256);
});

test.each(Object.entries(golden.ids_sha256))("%s gives the library's ids for long pieces", async (name, sha) => {
  const json = readFileSync(join(import.meta.dir, "small", `${name}.json`));
  const tokenizer = openTokenizer(await loadTokenizer(new Map([["tokenizer.json", json]])));
  expect(tokenizer.kind).toBe("kernel");
  const hash = createHash("sha256");
  for (const s of texts) hash.update(`[${tokenizer.encode(s).join(",")}]\n`);
  expect(hash.digest("hex")).toBe(sha);
});
