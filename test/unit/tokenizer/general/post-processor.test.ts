import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { postProcessorOf } from "../../../../src/tokenizer/post-processor.ts";
import { TokenizerError } from "../../../../src/tokenizer/tokenizer.ts";

interface Case {
  readonly post_processor: unknown;
  readonly single: number[];
  readonly pair: number[];
}
const golden = join(import.meta.dir, "../../../golden/tokenizer-general/post-processors.json");
const { cases } = JSON.parse(readFileSync(golden, "utf8")) as { cases: Case[] };
const TEXTS = { A: [100, 101], B: [200] };
const filled = (items: readonly (number | "A" | "B")[]): number[] =>
  items.flatMap((item) => (typeof item === "number" ? [item] : TEXTS[item]));

describe("ids of the Rust library", () => {
  for (const [i, { post_processor, single, pair }] of cases.entries()) {
    test(`case ${i}`, () => {
      const post = postProcessorOf(post_processor);
      expect(filled(post.single)).toEqual(single);
      expect(filled(post.pair)).toEqual(pair);
    });
  }
});

describe("refused by name", () => {
  const a = { Sequence: { id: "A", type_id: 0 } };
  const template = (single: unknown, pair: unknown = [a]): unknown => ({
    type: "TemplateProcessing",
    single,
    pair,
    special_tokens: {},
  });
  test.each([
    [{ type: "Another" }, "Another"],
    [[], "not an object"],
    [{ type: "BertProcessing", sep: ["x", 1] }, "no cls token"],
    [template([a, a]), "its text once"],
    [template([]), "its text once"],
    [template([a, { SpecialToken: { id: "bos", type_id: 0 } }]), "bos"],
    [template([a, { Sequence: { id: "B", type_id: 0 } }]), "names a second"],
    [{ type: "Sequence", processors: [template([a, a, a]), template([a])] }, "after another"],
  ])("%j", (json, message) => {
    expect(() => postProcessorOf(json)).toThrow(TokenizerError);
    expect(() => postProcessorOf(json)).toThrow(message);
  });
});
