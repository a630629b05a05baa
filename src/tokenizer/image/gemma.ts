import { TokenizerError } from "../tokenizer.ts";
import { addedTrie } from "./added-tokens.ts";
import { Family } from "./header.ts";
import { ImageLayout, type ImageUnderWork } from "./layout.ts";
import { placeTokens, writeAdded, writePairs, writeTokens } from "./tables.ts";
import type { TokenizerJson } from "./tokenizer-json.ts";
import { layOut, type Vocabulary } from "./vocabulary.ts";

/** Bits of the filter for joined characters: here every merge is in it. */
const JOIN_BITS = 22;
/** The vocabulary's sign for a space. */
const SPACE_SIGN = "▁";

/** Builds the image of a Gemma tokenizer: BPE over characters with byte fallback and no pre-tokenizer that cuts. */
export function gemmaImage(json: TokenizerJson): ImageUnderWork {
  const { v, words: text } = gemmaVocabulary(json);
  const trie = addedTrie(json.added_tokens.map((t) => ({ id: t.id, content: t.content, special: t.special === true })));
  const layout = new ImageLayout();
  layout.set("family", Family.gemma);
  layout.place("joinFilter", 2 ** JOIN_BITS / 8);
  layout.set("joinShift", 32 - JOIN_BITS);
  layout.place("asciiJoins", 128 * 128);
  layout.place("wholeFilter", 512);
  placeTokens(layout, v, trie);

  const image = layout.open();
  const { kernel } = image;
  writeAdded(image, trie);
  writeTokens(image, v);
  image.init();
  writePairs(image, v);
  const symbol = (c: number): number => (c === 0x2581 ? 32 : c);
  for (let m = 0; m < v.merges.length; m += 3) {
    const left = text[v.merges[m]!]!;
    const right = text[v.merges[m + 1]!]!;
    const last = left.codePointAt(left.length - 2);
    const end = last !== undefined && last > 0xffff ? last : left.charCodeAt(left.length - 1);
    kernel.insertAnyJoin(symbol(end), symbol(right.codePointAt(0)!));
  }
  // characters first: merging starts from them
  const reachable: number[] = [];
  for (const [id, word] of text.entries()) if (word && !word.includes(" ") && !isByteToken(word)) reachable.push(id);
  const single = (id: number): boolean => [...text[id]!].length === 1;
  for (const id of reachable) if (single(id)) kernel.insertToken(id);
  for (const id of reachable) if (!single(id) && kernel.encodesItself(id)) kernel.insertToken(id);
  return image;
}

const isByteToken = (word: string): boolean => /^<0x[0-9A-F]{2}>$/.test(word);

/** Bytes of ASCII characters that are tokens, and those that UTF-8 does not have, never stand alone. */
const isNeeded = (b: number, vocab: TokenizerJson["model"]["vocab"]): boolean =>
  b < 0x80 ? vocab[String.fromCharCode(b)] === undefined : b !== 0xc0 && b !== 0xc1 && b < 0xf5;

function gemmaVocabulary(json: TokenizerJson): { v: Vocabulary; words: string[] } {
  const { vocab } = json.model;
  const byteIds = new Int32Array(256);
  for (let b = 0; b < 256; b++) {
    const id = vocab[`<0x${b.toString(16).toUpperCase().padStart(2, "0")}>`];
    if (id === undefined && isNeeded(b, vocab)) {
      throw new TokenizerError(`the vocabulary of tokenizer.json has no token for the byte ${b}`);
    }
    byteIds[b] = id ?? -1;
  }
  const utf8 = new TextEncoder();
  const v = layOut(json, byteIds, (word) =>
    isByteToken(word)
      ? Uint8Array.of(Number.parseInt(word.slice(3, 5), 16))
      : utf8.encode(word.replaceAll(SPACE_SIGN, " ")),
  );
  const words: string[] = new Array(v.tokenCount).fill("");
  for (const [word, id] of Object.entries(vocab)) words[id] = word;
  const byteTokens = new Set(byteIds);
  for (let m = 0; m < v.merges.length; m += 3) {
    if (byteTokens.has(v.merges[m]!) || byteTokens.has(v.merges[m + 1]!) || byteTokens.has(v.merges[m + 2]!)) {
      throw new TokenizerError("a merge of tokenizer.json uses a byte token");
    }
  }
  return { v, words };
}
