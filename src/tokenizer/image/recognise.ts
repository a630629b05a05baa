import { rustNfc } from "../nfc.ts";
import { numberedTokens } from "./added-tokens.ts";
import { byteAlphabet, NO_BYTE } from "./byte-alphabet.ts";
import type { PrefixName } from "./header.ts";
import { type KnownSplit, knownSplit } from "./patterns.ts";
import { textSearch } from "./text-search.ts";
import { type AddedTokenJson, isObject, type TokenizerJson } from "./tokenizer-json.ts";

/** A configuration that the kernel encodes exactly. */
export interface KnownConfiguration extends KnownSplit {
  readonly nfc: boolean;
  /** Is a space put before sections of text, and is one taken away from the start of what is decoded? */
  readonly prefix: PrefixName;
  readonly strip: boolean;
}

/** What the kernel can't do, in words that name the part of tokenizer.json. */
export interface NotKnown {
  readonly unsupported: string;
}

/** Finds the kernel family of a tokenizer by comparing whole parts, or says what stands against it. */
export function recognise(file: TokenizerJson): KnownConfiguration | NotKnown {
  const { model } = file;
  const json = { ...file, added_tokens: numberedTokens(file) };
  const added = addedTokenProblem(json);
  if (added) return { unsupported: added };
  if (model.type !== undefined && model.type !== "BPE") return { unsupported: `model type ${model.type}` };
  if (!json.words || !json.merges) return { unsupported: "a model without vocab and merges" };
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
  if (missingBytes(json).length > 0 && unknownId(json) === undefined)
    return { unsupported: "a byte-level vocabulary without a token for every byte" };
  if (json.added_tokens.some(({ content }) => isOtherInBytes(content)))
    return { unsupported: "an added token that stands for other bytes in a byte-level vocabulary" };
  const nfc = isObject(json.normalizer) && json.normalizer["type"] === "NFC";
  if (hasNormalizer(json) && !(nfc && known.family !== "deepseek")) return { unsupported: "this normalizer" };
  if (nfc && known.han) return { unsupported: "this normalizer" };
  return { ...known, nfc, prefix: "none", strip: false };
}

/** Bytes of UTF-8 that have no token: SmolLM's vocabulary, for one, has none for those that its training text lacked. */
export function missingBytes({ words }: TokenizerJson): number[] {
  const missing: number[] = [];
  for (const [unit, byte] of byteAlphabet().entries()) {
    if (byte === NO_BYTE || byte === 0xc0 || byte === 0xc1 || byte > 0xf4) continue;
    const sign = Buffer.from(String.fromCharCode(unit));
    if (!words || words.find(sign, 0, sign.length) < 0) missing.push(byte);
  }
  return missing;
}

/** The token that stands for each byte without one, if there is such a token and it does so for each byte alone. */
export function unknownId({ model, words }: TokenizerJson): number | undefined {
  const { unk_token, fuse_unk } = model;
  if (!unk_token || fuse_unk) return undefined;
  const id = words?.find(Buffer.from(unk_token), 0, Buffer.byteLength(unk_token)) ?? -1;
  return id < 0 ? undefined : id;
}

/** The decoder takes any text of the byte alphabet for bytes. */
function isOtherInBytes(content: string): boolean {
  const table = byteAlphabet();
  const bytes = Array.from(content, (c) => (c.length === 1 ? table[c.charCodeAt(0)]! : NO_BYTE));
  return !bytes.includes(NO_BYTE) && !Buffer.from(bytes).equals(Buffer.from(content));
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
  const split = { family: "gemma", maxDigits: 0, contractions: false, marks: false, han: false, tail: 0 } as const;
  return { ...split, nfc: false, prefix: known.prefix, strip };
}

/** Bytes of all added tokens: keys of their trie, 256 times the number of a node, must fit in 31 bits. */
const MOST_ADDED = 1 << 22;
/** Bytes of one: the kernel goes along a token anew from each place of a text. Those of known models have up to 93. */
const LONGEST_ADDED = 256;

/** What about the added tokens the kernel would get wrong, or undefined. */
function addedTokenProblem(json: TokenizerJson): string | undefined {
  if (json.added_tokens.reduce((sum, t) => sum + Buffer.byteLength(t.content), 0) > MOST_ADDED)
    return "added tokens of more than 4 MB";
  for (const token of json.added_tokens) {
    if (Buffer.byteLength(token.content) > LONGEST_ADDED) return `an added token of more than ${LONGEST_ADDED} bytes`;
    const name = JSON.stringify(token.content);
    if (token.single_word) return `single_word of the added token ${name}`;
    if (token.normalized && !isPlainNormalized(json, token.content)) return `a normalizer for the added token ${name}`;
  }
  const nfc = isNfc(json.normalizer);
  return overlap(json.added_tokens.map((t) => (t.normalized && nfc ? { ...t, content: rustNfc(t.content) } : t)));
}

const isNfc = (normalizer: unknown): boolean => isObject(normalizer) && normalizer["type"] === "NFC";

/** May a token that is looked for in normalized text be looked for in the text as it is? */
function isPlainNormalized({ normalizer }: TokenizerJson, content: string): boolean {
  if (normalizer === null || normalizer === undefined || isNfc(normalizer)) return true;
  if (Bun.deepEquals(normalizer, SPACE_SIGNS)) return !/[ ▁]/.test(content);
  return isObject(normalizer) && normalizer["type"] === "Sequence" && Bun.deepEquals(normalizer["normalizers"], []);
}

/**
 * Normalized tokens are matched after all others: in one pass with them only if none can begin before another and overlap it, and
 * none lies in a special token, whose text may be taken as it is.
 */
function overlap(tokens: readonly AddedTokenJson[]): string | undefined {
  const late = tokens.filter((t) => t.normalized);
  if (late.length === 0) return undefined;
  const early = tokens.filter((t) => !t.normalized);
  return (
    meeting(late, early) ??
    meeting(
      early.filter((t) => t.special),
      late,
    )
  );
}

/** A token of `over` that one of `tokens` contains or may run into, in words. */
function meeting(tokens: readonly AddedTokenJson[], over: readonly AddedTokenJson[]): string | undefined {
  const search = textSearch(over.map((t) => t.content));
  for (const { content } of tokens) {
    const met = search.meets(content);
    if (met >= 0)
      return `the added tokens ${JSON.stringify(content)} and ${JSON.stringify(over[met]!.content)}, which overlap, one of them normalized`;
  }
  return undefined;
}
