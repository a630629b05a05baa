import { byteAlphabet, NO_BYTE } from "./byte-alphabet.ts";
import type { FamilyName, PrefixName } from "./header.ts";
import { type AddedTokenJson, isObject, type TokenizerJson } from "./tokenizer-json.ts";

/** A configuration that the kernel encodes exactly. */
export interface KnownConfiguration {
  readonly family: FamilyName;
  /** Digits per piece at most. */
  readonly maxDigits: number;
  /** Are 's, 't, 're and the like cut off words, or kept with them? */
  readonly contractions: boolean;
  /** Do combining marks count as letters? */
  readonly marks: boolean;
  readonly nfc: boolean;
  /** Is a space put before sections of text, and is one taken away from the start of what is decoded? */
  readonly prefix: PrefixName;
  readonly strip: boolean;
}

/** What the kernel can't do, in words that name the part of tokenizer.json. */
export interface NotKnown {
  readonly unsupported: string;
  /** The general library is known to give other ids than the Rust library here, so it is no way out. */
  readonly refuse?: boolean;
}

const CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const SPACES = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const cl100k = (letter: string, digits: string, other: string): string =>
  `${CONTRACTION}|[^\\r\\n\\p{L}\\p{N}]?${letter}+|${digits}| ?${other}+[\\r\\n]*|${SPACES}`;
const UPPER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
const LOWER = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
const o200k = (suffix: string, digits: string): string =>
  `[^\\r\\n\\p{L}\\p{N}]?${UPPER}*${LOWER}+${suffix}|[^\\r\\n\\p{L}\\p{N}]?${UPPER}+${LOWER}*${suffix}|` +
  `${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${SPACES}`;
const DEEPSEEK = [
  "\\p{N}{1,3}",
  "[一-龥\u3040-ゟ゠-ヿ]+",
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];

interface KnownSplit extends Omit<KnownConfiguration, "nfc" | "prefix" | "strip"> {
  /** Patterns of the pre-tokenizer's splits, in a row. */
  readonly patterns: readonly string[];
}
const split = (patterns: readonly string[], family: FamilyName, maxDigits: number): KnownSplit => ({
  patterns,
  family,
  maxDigits,
  contractions: family !== "deepseek",
  marks: false,
});
const SPLITS: readonly KnownSplit[] = [
  // Llama 3, GLM 4, cl100k
  split([cl100k("\\p{L}", "\\p{N}{1,3}", "[^\\s\\p{L}\\p{N}]")], "cl100k", 3),
  // Qwen 2 to 3
  split([cl100k("\\p{L}", "\\p{N}", "[^\\s\\p{L}\\p{N}]")], "cl100k", 1),
  // Qwen 3.5
  { ...split([cl100k("[\\p{L}\\p{M}]", "\\p{N}", "[^\\s\\p{L}\\p{M}\\p{N}]")], "cl100k", 1), marks: true },
  // gpt-oss, gpt-4o
  split([o200k(`${CONTRACTION}?`, "\\p{N}{1,3}")], "o200k", 3),
  // Mistral's Tekken
  { ...split([o200k("", "\\p{N}")], "o200k", 1), contractions: false },
  // DeepSeek V3
  split(DEEPSEEK, "deepseek", 3),
];

/** Models that the general library encodes as the Rust library does; it takes unknown ones for something else. */
const GENERAL_MODELS: readonly (string | undefined)[] = [undefined, "BPE", "WordPiece"];

/** Finds the kernel family of a tokenizer by comparing whole parts, or says what stands against it. */
export function recognise(json: TokenizerJson): KnownConfiguration | NotKnown {
  const { model } = json;
  const added = addedTokenProblem(json);
  if (added) return { unsupported: added, refuse: true };
  if (!GENERAL_MODELS.includes(model.type)) return { unsupported: `a ${model.type} model`, refuse: true };
  if (mentions(json.normalizer, "Precompiled")) return { unsupported: "a Precompiled normalizer", refuse: true };
  if (model.type !== undefined && model.type !== "BPE") return { unsupported: `model type ${model.type}` };
  if (!json.words || !json.merges) return { unsupported: "a model without vocab and merges", refuse: true };
  if (model.dropout) return { unsupported: "dropout" };
  if (model.continuing_subword_prefix) return { unsupported: "continuing_subword_prefix" };
  if (model.end_of_word_suffix) return { unsupported: "end_of_word_suffix" };
  if (
    json.added_tokens.some((t) => t.lstrip || t.rstrip) &&
    json.added_tokens.some((t) => t.normalized || /^[\s\x85]/.test(t.content))
  ) {
    return {
      unsupported: "added tokens with lstrip or rstrip beside others that white space or a normalizer concerns",
    };
  }
  return characterLevel(json) ?? byteLevel(json);
}

function byteLevel(json: TokenizerJson): KnownConfiguration | NotKnown {
  if (json.model.byte_fallback) return { unsupported: "byte_fallback with this pre-tokenizer" };
  if (!isObject(json.decoder) || json.decoder["type"] !== "ByteLevel") return { unsupported: "this decoder" };
  const known = knownSplit(json.pre_tokenizer);
  if (!known) return { unsupported: "this pre_tokenizer" };
  if (!hasEveryByte(json)) return { unsupported: "a byte-level vocabulary without a token for every byte" };
  const nfc = isObject(json.normalizer) && json.normalizer["type"] === "NFC";
  if (hasNormalizer(json) && !(nfc && known.family !== "deepseek")) return { unsupported: "this normalizer" };
  const { family, maxDigits, contractions, marks } = known;
  return { family, maxDigits, contractions, marks, nfc, prefix: "none", strip: false };
}

/** SmolLM's vocabulary, for one, has none for bytes that its training text lacked; the kernel needs them all. */
function hasEveryByte({ words }: TokenizerJson): boolean {
  return byteAlphabet().every((byte, unit) => {
    if (byte === NO_BYTE) return true;
    const sign = Buffer.from(String.fromCharCode(unit));
    return words !== undefined && words.find(sign, 0, sign.length) >= 0;
  });
}

function knownSplit(pre: unknown): KnownSplit | undefined {
  const steps = isObject(pre) && pre["type"] === "Sequence" ? pre["pretokenizers"] : [pre];
  if (!Array.isArray(steps)) return undefined;
  const last: unknown = steps.at(-1);
  if (!isObject(last) || last["type"] !== "ByteLevel" || last["add_prefix_space"] !== false) return undefined;
  if (last["use_regex"] !== false) {
    // GPT-2's own pattern, perhaps with digits taken out before
    if (steps.length === 1) return split([], "gpt2", 0);
    return steps.length === 2 && Bun.deepEquals(steps[0], SINGLE_DIGITS) ? split([], "gpt2", 1) : undefined;
  }
  const patterns = steps.slice(0, -1).map(splitPattern);
  return SPLITS.find((s) => s.patterns.length === patterns.length && s.patterns.every((p, i) => p === patterns[i]));
}

const SINGLE_DIGITS = { type: "Digits", individual_digits: true };

/** The regular expression of a Split that keeps every piece, else undefined. The patterns leave no text between matches. */
function splitPattern(step: unknown): string | undefined {
  if (!isObject(step) || step["type"] !== "Split" || !isObject(step["pattern"])) return undefined;
  const isolated = step["behavior"] === "Isolated" && !step["invert"];
  const matches = step["behavior"] === "Removed" && step["invert"] === true;
  const regex = step["pattern"]["Regex"];
  return (isolated || matches) && typeof regex === "string" ? regex : undefined;
}

function hasNormalizer({ normalizer }: TokenizerJson): boolean {
  if (normalizer === null || normalizer === undefined) return false;
  const steps = isObject(normalizer) && normalizer["type"] === "Sequence" ? normalizer["normalizers"] : undefined;
  return !(Array.isArray(steps) && steps.length === 0);
}

const SPACE_SIGNS = { type: "Replace", pattern: { String: " " }, content: "▁" };
const GEMMA_SPLIT = { type: "Split", pattern: { String: " " }, behavior: "MergedWithPrevious", invert: false };
const PREPEND = { type: "Sequence", normalizers: [{ type: "Prepend", prepend: "▁" }, SPACE_SIGNS] };
const metaspace = (scheme: string): unknown => ({
  type: "Metaspace",
  replacement: "▁",
  prepend_scheme: scheme,
  split: false,
});
const SPACES_BACK = [
  { type: "Replace", pattern: { String: "▁" }, content: " " },
  { type: "ByteFallback" },
  { type: "Fuse" },
];
const DECODER = { type: "Sequence", decoders: SPACES_BACK };
const STRIPPING_DECODER = {
  type: "Sequence",
  decoders: [...SPACES_BACK, { type: "Strip", content: " ", start: 1, stop: 0 }],
};

/** Normalizer and pre-tokenizer of the tokenizers that merge characters of whole sections, by where they put a space. */
const CHARACTER_LEVEL: readonly { normalizer: unknown; pre: unknown; prefix: PrefixName }[] = [
  // Gemma 2 and 3
  { normalizer: SPACE_SIGNS, pre: null, prefix: "none" },
  { normalizer: SPACE_SIGNS, pre: GEMMA_SPLIT, prefix: "none" },
  // Llama 2, Mistral
  { normalizer: PREPEND, pre: null, prefix: "each" },
  { normalizer: null, pre: metaspace("always"), prefix: "eachBare" },
  { normalizer: null, pre: metaspace("first"), prefix: "firstBare" },
];

/** BPE over characters with byte fallback, if it is that. */
function characterLevel(json: TokenizerJson): KnownConfiguration | undefined {
  if (json.model.byte_fallback !== true || json.model.ignore_merges) return undefined;
  const [normalizer, pre] = [json.normalizer ?? null, json.pre_tokenizer ?? null];
  const known = CHARACTER_LEVEL.find((k) => Bun.deepEquals(k.normalizer, normalizer) && Bun.deepEquals(k.pre, pre));
  const strip = Bun.deepEquals(json.decoder, STRIPPING_DECODER);
  if (!known || (!strip && !Bun.deepEquals(json.decoder, DECODER))) return undefined;
  return { family: "gemma", maxDigits: 0, contractions: false, marks: false, nfc: false, prefix: known.prefix, strip };
}

const mentions = (part: unknown, type: string): boolean => JSON.stringify(part ?? null).includes(`"type":"${type}"`);

/** What about the added tokens a single leftmost-longest pass would get wrong, or undefined. */
function addedTokenProblem(json: TokenizerJson): string | undefined {
  const { words } = json;
  if (!words) return undefined;
  let highest = -1;
  for (const token of [...json.added_tokens].sort((a, b) => a.id - b.id)) {
    const name = JSON.stringify(token.content);
    if (!token.content) return "an empty added token";
    if (token.single_word) return `single_word of the added token ${name}`;
    if (token.normalized && hasNormalizer(json)) return `a normalizer for the added token ${name}`;
    // the Rust library numbers added tokens itself: by the vocabulary, else the next free id
    const content = Buffer.from(token.content);
    const inVocabulary = words.find(content, 0, content.length);
    const expected = inVocabulary >= 0 ? inVocabulary : Math.max(highest + 1, words.count);
    if (expected !== token.id) {
      return `the id ${token.id} for the added token ${name} (it would become ${expected})`;
    }
    highest = Math.max(highest, token.id);
  }
  return overlap(json.added_tokens);
}

/** Normalized tokens are matched after all others: in one pass with them only if none can begin before another and overlap it. */
function overlap(tokens: readonly AddedTokenJson[]): string | undefined {
  const raw = tokens.filter((t) => !t.normalized);
  for (const { content } of tokens.filter((t) => t.normalized)) {
    for (const { content: other } of raw) {
      let clash = content.includes(other);
      for (let n = 1; n < content.length && n < other.length && !clash; n++)
        clash = content.endsWith(other.slice(0, n));
      if (clash)
        return `the normalized added token ${JSON.stringify(content)}, which overlaps ${JSON.stringify(other)}`;
    }
  }
  return undefined;
}
