import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fillInOf, fillInPrompt } from "../../../../src/apis/completions/fim.ts";
import { UnsupportedError } from "../../../../src/errors.ts";
import { loadTokenizer, openTokenizer } from "../../../../src/tokenizer/load.ts";
import type { Tokenizer } from "../../../../src/tokenizer/tokenizer.ts";

interface Json {
  readonly model: { readonly vocab: Readonly<Record<string, number>> };
  added_tokens: { id: number; content: string }[];
}

/** A small tokenizer with more added tokens; gives it and their ids, in order. */
async function withTokens(file: string, contents: readonly string[]): Promise<[Tokenizer, number[]]> {
  const path = join(import.meta.dir, "../../../golden/tokenizer/small", `${file}.json`);
  const json = JSON.parse(readFileSync(path, "utf8")) as Json;
  const taken = [...Object.values(json.model.vocab), ...json.added_tokens.map(({ id }) => id)];
  const first = taken.reduce((a, b) => Math.max(a, b)) + 1;
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  const ids = contents.map((content, i) => {
    json.added_tokens.push({ id: first + i, content, ...flags });
    return first + i;
  });
  const files = new Map([["tokenizer.json", Buffer.from(JSON.stringify(json))]]);
  return [openTokenizer(await loadTokenizer(files)), ids];
}

const middle = async (tokenizer: Tokenizer, prefix: string, suffix: string) => {
  const encode = async (text: string) => tokenizer.encode(text, { specialAsText: true });
  const form = fillInOf(tokenizer, "m");
  return Array.from(await fillInPrompt(form, prefix, suffix, tokenizer, { encode, addSpecialTokens: true }));
};

test.each([
  ["Qwen", ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]],
  ["StarCoder", ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"]],
  ["SantaCoder", ["<fim-prefix>", "<fim-suffix>", "<fim-middle>"]],
  ["DeepSeek", ["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"]],
])("%s: prefix, suffix, middle", async (_, markers) => {
  const [tokenizer, [before, between, behind]] = await withTokens("gpt2", markers);
  const text = (of: string) => Array.from(tokenizer.encode(of));
  expect(await middle(tokenizer, "a b", ` c ${markers[0]}`)).toEqual([
    before!,
    ...text("a b"),
    between!,
    ...Array.from(tokenizer.encode(` c ${markers[0]}`, { specialAsText: true })),
    behind!,
  ]);
  expect(await middle(tokenizer, "", "c")).toEqual([before!, between!, ...text("c"), behind!]);
});

test("Code Llama: no space is put in front of the suffix, and its own token ends the middle", async () => {
  const markers = ["▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"];
  const [tokenizer, [before, between, behind, end]] = await withTokens("prepend_strip", markers);
  const text = (of: string) => Array.from(tokenizer.encode(of));
  const suffix = "on\nand";
  const ids = await middle(tokenizer, "the", suffix);
  expect(ids.slice(0, 2 + text("the").length)).toEqual([before!, ...text("the"), between!]);
  const found = ids.slice(2 + text("the").length, -1);
  const written = Buffer.concat(found.map((id) => tokenizer.tokenBytes(id))).toString();
  expect(Buffer.concat(text(suffix).map((id) => tokenizer.tokenBytes(id))).toString()).toBe(` ${suffix}`);
  expect(written).toBe(suffix);
  expect(ids.at(-1)).toBe(behind!);
  expect(fillInOf(tokenizer, "m").end).toBe(end!);
});

test("a model without such tokens, or with some of them only, is refused by name", async () => {
  const [none] = await withTokens("gpt2", []);
  const [some] = await withTokens("gpt2", ["<fim_prefix>", "<fim_suffix>"]);
  for (const tokenizer of [none, some])
    expect(() => fillInOf(tokenizer, "plain")).toThrow(
      new UnsupportedError("The model 'plain' has no tokens to fill in with: leave suffix out", { param: "suffix" }),
    );
});
