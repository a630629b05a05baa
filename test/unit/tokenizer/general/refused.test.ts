import { expect, test } from "bun:test";
import { buildGeneral } from "../../../../src/tokenizer/general/build.ts";
import { TokenizerError } from "../../../../src/tokenizer/tokenizer.ts";
import { variantJson } from "../../../golden/tokenizer-general/variants.ts";
import { characters } from "./fixtures.ts";

const split = (Regex: string): unknown => ({ type: "Split", pattern: { Regex }, behavior: "Isolated", invert: false });

test.each<[Record<string, unknown>, string]>([
  [{ normalizer: { type: "Magic" } }, 'the normalizer {"type":"Magic"}'],
  [{ normalizer: [] }, "normalizer of tokenizer.json is not an object"],
  [{ normalizer: { type: "BertNormalizer", lowercase: true } }, "no valid clean_text"],
  [{ normalizer: { type: "Precompiled", precompiled_charsmap: "AAAA" } }, "precompiled_charsmap"],
  [{ normalizer: { type: "Replace", pattern: { Regex: "\\p{Emoji}" }, content: "" } }, "\\\\p{Emoji}"],
  [{ pre_tokenizer: { type: "Magic" } }, "the pre_tokenizer"],
  [{ pre_tokenizer: { type: "Split", pattern: { String: "a" }, behavior: "Odd", invert: false } }, "Odd"],
  [{ pre_tokenizer: { type: "Metaspace", replacement: "ab" } }, "no valid replacement"],
  [{ pre_tokenizer: { type: "Metaspace", replacement: "_", add_prefix_space: false } }, "add_prefix_space"],
  [{ pre_tokenizer: { type: "FixedLength", length: 0 } }, "FixedLength"],
  [{ pre_tokenizer: split("(a)\\1") }, "\\1"],
  [{ pre_tokenizer: split("a(?~b)") }, "the group (?~"],
  [{ pre_tokenizer: split("a{3,1}") }, "{3,1}"],
  [{ pre_tokenizer: split("(?i:straße)") }, "ß"],
  [{ pre_tokenizer: split("(?i:stop)") }, "st in any case"],
  [{ pre_tokenizer: split("[[:alpha:]]") }, "[:alpha:]"],
  [{ pre_tokenizer: split("a\\Z") }, "\\Z"],
  [{ pre_tokenizer: split("(a") }, "parenthesis"],
  [{ pre_tokenizer: split("a)") }, "parenthesis"],
  [{ pre_tokenizer: split("[a") }, "open end"],
  [{ pre_tokenizer: split("[z-a]") }, "range"],
  [{ decoder: { type: "Magic" } }, "the decoder"],
  [{ decoder: { type: "Sequence", decoders: [{ type: "Fuse" }, { type: "ByteFallback" }] } }, "joined already"],
  [{ post_processor: { type: "Magic" } }, "post_processor"],
  [{ model: { type: "Magic" } }, "the model"],
  [{ model: { dropout: 0.1 } }, "dropout"],
  [{ model: { type: "Unigram" } }, "vocabulary"],
  [{ model: { merges: ["a nothing"] } }, "anothing"],
  [{ model: { merges: ["a b c"] } }, "has not two parts"],
  [{ added_tokens: [{ content: 3 }] }, "added_tokens"],
  [
    {
      normalizer: { type: "Lowercase" },
      added_tokens: ["A", "a"].map((content) => ({ content, normalized: true })),
    },
    "the same as another",
  ],
  [{ normalizer: { type: "StripAccents" }, added_tokens: [{ content: "\u0301", normalized: true }] }, "to nothing"],
])("%j", (patch, message) => {
  expect(() => characters(patch)).toThrow(TokenizerError);
  expect(() => characters(patch)).toThrow(message);
});

test("files that are no tokenizer.json", () => {
  const whole = variantJson("characters", {});
  for (const bytes of [Buffer.from(""), Buffer.from("[]"), Buffer.from("{}"), Buffer.from('{"model":{"type":"BPE"}}')])
    expect(() => buildGeneral(bytes)).toThrow(TokenizerError);
  for (let end = 1; end < whole.length; end += 97)
    expect(() => buildGeneral(whole.subarray(0, end))).toThrow(TokenizerError);
});
