/** Prompts that ask for the middle of a text, against mistral-common (see make_fim.py). */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fillInOf, fillInPrompt } from "../../../src/apis/completions/fim.ts";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";

interface Case {
  readonly prefix: string;
  readonly suffix: string;
  readonly ids: readonly number[];
}
const read = (name: string) => readFileSync(join(import.meta.dir, name));
const { cases } = JSON.parse(read("fim.json").toString()) as { readonly cases: readonly Case[] };

test("a SentencePiece model as Codestral's", async () => {
  const tokenizer = openTokenizer(await loadTokenizer(new Map([["tokenizer.model", read("fim.model")]])));
  const form = fillInOf(tokenizer, "codestral");
  const encode = async (text: string) => tokenizer.encode(text, { specialAsText: true });
  expect(cases.length).toBe(88);
  for (const { prefix, suffix, ids } of cases) {
    const found = await fillInPrompt(form, prefix, suffix, tokenizer, { encode, addSpecialTokens: true });
    expect({ prefix, suffix, ids: Array.from(found) }).toEqual({ prefix, suffix, ids: [...ids] });
    const bare = await fillInPrompt(form, prefix, suffix, tokenizer, { encode, addSpecialTokens: false });
    expect(Array.from(bare)).toEqual(ids.slice(1));
  }
});
