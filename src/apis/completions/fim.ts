/** Prompts that ask for the middle of a text, between a prefix and a suffix. */
import { UnsupportedError } from "../../errors.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";

/** How a model was trained to fill in: the text between its markers, in the order of the prompt. */
interface Form {
  readonly order: readonly ("prefix" | "suffix" | { readonly marker: string })[];
  /** The BOS that it begins with, also where the model's tokenizer itself puts none in front of texts. */
  readonly bos?: string;
  /** What the model ends the middle with, where it is not its EOS. */
  readonly end?: string;
}

const prefixFirst = (prefix: string, suffix: string, middle: string, end?: string): Form => ({
  order: [{ marker: prefix }, "prefix", { marker: suffix }, "suffix", { marker: middle }],
  ...(end !== undefined && { end }),
});

/**
 * The forms, as the models' own pages and tokenizers give them. Qwen's is that of CodeGemma and Granite 4 as well, StarCoder's that of
 * Granite Code; Codestral's is `encode_fim` of mistral-common; Code Llama's that of its authors' own program.
 */
const FORMS: readonly Form[] = [
  prefixFirst("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
  prefixFirst("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
  prefixFirst("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
  prefixFirst("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
  prefixFirst("▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"),
  { order: [{ marker: "[SUFFIX]" }, "suffix", { marker: "[PREFIX]" }, "prefix"], bos: "<s>" },
];

/** A form with the ids of its markers in a model's vocabulary. */
export interface FillIn {
  readonly order: readonly ("prefix" | "suffix" | number)[];
  readonly bos: number | undefined;
  /** Token that ends the middle, besides the model's own. */
  readonly end: number | undefined;
}

/** How a model fills in, by the added tokens that it has. Throws UnsupportedError where it has none for it. */
export function fillInOf(tokenizer: Tokenizer, model: string): FillIn {
  const added = (text: string): number | undefined => {
    const id = tokenizer.tokenId(text);
    return id !== undefined && tokenizer.isAdded(id) ? id : undefined;
  };
  for (const { order, bos, end } of FORMS) {
    const ids = order.map((part) => (typeof part === "string" ? part : added(part.marker)));
    if (ids.some((part) => part === undefined)) continue;
    const idOf = (text: string | undefined) => (text === undefined ? undefined : added(text));
    return { order: ids as FillIn["order"], bos: idOf(bos), end: idOf(end) };
  }
  throw new UnsupportedError(`The model '${model}' has no tokens to fill in with: leave suffix out`, {
    param: "suffix",
  });
}

/** No merge of any vocabulary reaches across it. */
const GUARD = "☺";

export interface FillInEncoding {
  /** Ids of a text, special tokens in it as text; never asked for an empty one. */
  readonly encode: (text: string) => Promise<Uint32Array>;
  /** The prompt begins with the model's BOS. */
  readonly addSpecialTokens: boolean;
}

/**
 * Ids of the whole prompt. A suffix goes on from the middle, so that it gets no space in front, whatever the tokenizer does at the
 * beginning of texts.
 */
export async function fillInPrompt(
  { order, bos }: FillIn,
  prefix: string | Uint32Array,
  suffix: string,
  tokenizer: Tokenizer,
  { encode, addSpecialTokens }: FillInEncoding,
): Promise<Uint32Array> {
  const { single } = tokenizer.postProcessor;
  const before = single.slice(0, single.indexOf("A")) as number[];
  if (before.length === 0 && bos !== undefined) before.push(bos);
  const parts: (number | Uint32Array)[] = addSpecialTokens ? before : [];
  for (const part of order) {
    if (typeof part === "number") parts.push(part);
    else if (part === "suffix") parts.push(await continued(suffix, tokenizer, encode));
    else if (typeof prefix !== "string") parts.push(prefix);
    else if (prefix !== "") parts.push(await encode(prefix));
  }
  return Uint32Array.from(parts.flatMap((part) => (typeof part === "number" ? [part] : Array.from(part))));
}

/** Ids of a text that does not begin one. */
async function continued(
  text: string,
  tokenizer: Tokenizer,
  encode: (text: string) => Promise<Uint32Array>,
): Promise<Uint32Array> {
  const guard = tokenizer.encode(GUARD);
  const addsSpace = tokenizer.tokenBytes(guard[0] ?? -1)[0] === 0x20;
  if (!addsSpace) return encode(text);
  const ids = await encode(GUARD + text);
  return guard.every((id, i) => ids[i] === id) ? ids.slice(guard.length) : encode(text);
}
