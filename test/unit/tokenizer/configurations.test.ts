/**
 * Which tokenizer takes the configurations of which chat models: the parts of a tokenizer.json that decide it, over a small vocabulary.
 * Patterns are those of the models' own files where we have these (Llama 3, Qwen 3, gpt-oss, DeepSeek V3, Gemma 2 and 3, Llama 2,
 * Claude), else as llama.cpp's list of pre-tokenizers quotes them; a model stands in the row whose pattern that list gives it.
 */
import { describe, expect, test } from "bun:test";
import { recognise } from "../../../src/tokenizer/image/recognise.ts";
import { parseTokenizerJson } from "../../../src/tokenizer/image/tokenizer-json.ts";
import { smallJson } from "./fixtures.ts";

const CL100K =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|DIGITS| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const UPPER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
const LOWER = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
const WORD = `[^\\r\\n\\p{L}\\p{N}]?${UPPER}*${LOWER}+SUFFIX|[^\\r\\n\\p{L}\\p{N}]?${UPPER}+${LOWER}*SUFFIX`;
const O200K = `${WORD}|DIGITS| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;
const SUFFIX = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
const DEEPSEEK = [
  "\\p{N}{1,3}",
  "[一-龥\u3040-ゟ゠-ヿ]+",
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];

const regex = (pattern: string): unknown => ({
  type: "Split",
  pattern: { Regex: pattern },
  behavior: "Isolated",
  invert: false,
});
const byteLevel = (use_regex: boolean, add_prefix_space = false): unknown => ({
  type: "ByteLevel",
  add_prefix_space,
  trim_offsets: true,
  use_regex,
});
const sequence = (...pretokenizers: unknown[]): unknown => ({ type: "Sequence", pretokenizers });
const splits = (...patterns: string[]): unknown => sequence(...patterns.map(regex), byteLevel(false));
const digits = { type: "Digits", individual_digits: true };
const NFC = { type: "NFC" };
const SPACES = { type: "Replace", pattern: { String: " " }, content: "▁" };
const PREPEND = { type: "Sequence", normalizers: [{ type: "Prepend", prepend: "▁" }, SPACES] };
const metaspace = (prepend_scheme: string, split = false): unknown => ({
  type: "Metaspace",
  replacement: "▁",
  prepend_scheme,
  split,
});

type Row = [
  models: string,
  base: "cl100k" | "gemma" | "prepend",
  normalizer: unknown,
  pre_tokenizer: unknown,
  kernel: boolean,
];
const rows: Row[] = [
  [
    "Llama 3, GLM 4, OLMo 2, Phi 4, Falcon 3, SmolLM 3, Granite 4",
    "cl100k",
    null,
    splits(CL100K.replace("DIGITS", "\\p{N}{1,3}")),
    true,
  ],
  ["Qwen 2 to 3, Hunyuan", "cl100k", NFC, splits(CL100K.replace("DIGITS", "\\p{N}")), true],
  [
    "Qwen 3.5",
    "cl100k",
    NFC,
    splits(
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    ),
    true,
  ],
  [
    "Ling",
    "cl100k",
    null,
    splits(
      "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
    ),
    true,
  ],
  [
    "Seed",
    "cl100k",
    null,
    splits(
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    ),
    true,
  ],
  [
    "gpt-oss, Llama 4, MiniMax M2",
    "cl100k",
    null,
    splits(O200K.replaceAll("SUFFIX", SUFFIX).replace("DIGITS", "\\p{N}{1,3}")),
    true,
  ],
  [
    "Mistral's Tekken, Nemotron Nano",
    "cl100k",
    null,
    splits(O200K.replaceAll("SUFFIX", "").replace("DIGITS", "\\p{N}")),
    true,
  ],
  [
    "DeepSeek V3 to V3.2, Hunyuan's dense models",
    "cl100k",
    { type: "Sequence", normalizers: [] },
    splits(...DEEPSEEK),
    true,
  ],
  ["StarCoder 2, Granite 3, SmolLM 2", "cl100k", null, sequence(digits, byteLevel(true)), true],
  ["Command R", "cl100k", NFC, sequence(digits, byteLevel(true)), true],
  ["EXAONE 4, OLMo 1", "cl100k", NFC, byteLevel(true), true],
  ["Gemma 2", "gemma", SPACES, null, true],
  [
    "Gemma 3 and 4",
    "gemma",
    SPACES,
    { type: "Split", pattern: { String: " " }, behavior: "MergedWithPrevious", invert: false },
    true,
  ],
  ["Llama 2, Phi 3", "prepend", PREPEND, null, true],
  ["Mistral 7B v0.3", "prepend", null, metaspace("first"), true],
  ["Claude", "cl100k", { type: "NFKC" }, byteLevel(true), false],
  ["RoBERTa's way", "cl100k", null, byteLevel(true, true), false],
  [
    "DeepSeek's first coder",
    "cl100k",
    null,
    sequence(regex("[\r\n]"), regex("\\s?\\p{L}+"), regex("\\s?\\p{P}+"), digits, byteLevel(false)),
    false,
  ],
  [
    "K-EXAONE",
    "cl100k",
    NFC,
    splits(
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
    ),
    false,
  ],
  ["MiniCPM 5", "cl100k", null, splits("\\p{N}{1,3}", CL100K.replace("DIGITS", "\\p{N}+")), false],
  ["Metaspace that splits", "prepend", null, metaspace("first", true), false],
];

describe.each(rows)("%s", (_, base, normalizer, pre_tokenizer, kernel) => {
  test(kernel ? "is for the kernel" : "is for the general tokenizer", () => {
    const json = JSON.parse(Buffer.from(smallJson(base)).toString()) as object;
    const known = recognise(parseTokenizerJson(Buffer.from(JSON.stringify({ ...json, normalizer, pre_tokenizer }))));
    expect("unsupported" in known ? known.unsupported : "kernel").toEqual(
      kernel ? "kernel" : expect.stringMatching(/normalizer|pre_tokenizer|byte_fallback/),
    );
  });
});
