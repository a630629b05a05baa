/** What files beside a tokenizer.json add to its tokens, against transformers' AutoTokenizer (see make_added.py). */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";

interface Case {
  readonly base: string;
  readonly name: string;
  readonly changes: object;
  readonly files: Readonly<Record<string, unknown>>;
  readonly tokens: readonly (readonly [id: number, content: string, flags: string])[];
  readonly texts: readonly (readonly [text: string, ids: number[], shown: string])[];
}

const GOLDEN = JSON.parse(readFileSync(join(import.meta.dir, "cases.json"), "utf8")) as { readonly cases: Case[] };
const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

for (const { base, name, changes, files, tokens, texts } of GOLDEN.cases) {
  test(`${base}: ${name}`, async () => {
    const own = JSON.parse(readFileSync(join(import.meta.dir, "..", base), "utf8")) as object;
    const whole: Record<string, unknown> = { ...own, ...changes };
    if (whole["added_tokens"] === null) delete whole["added_tokens"];
    const all = Object.entries({ ...files, "tokenizer.json": whole });
    const tokenizer = openTokenizer(await loadTokenizer(new Map(all.map(([file, value]) => [file, json(value)]))));
    for (const [id, content] of tokens) expect([content, tokenizer.tokenId(content)]).toEqual([content, id]);
    for (const [text, ids, shown] of texts) {
      expect([text, [...tokenizer.encode(text)]]).toEqual([text, ids]);
      const decoder = tokenizer.decoder({ skipSpecialTokens: true });
      expect(ids.map((id) => decoder.push(id)).join("") + decoder.end()).toBe(shown);
    }
  });
}
