import type { Kernel } from "../kernel/kernel.ts";
import { TokenizerError } from "../tokenizer.ts";
import { addedTrie } from "./added-tokens.ts";
import { cutTokens } from "./cuts.ts";
import { Family, Flag, Prefix } from "./header.ts";
import { ImageLayout, type ImageUnderWork } from "./layout.ts";
import type { KnownConfiguration } from "./recognise.ts";
import { placeTokens, writeAdded, writePairs, writeTokens } from "./tables.ts";
import type { TokenizerJson } from "./tokenizer-json.ts";
import { layOut, type Vocabulary, type WriteWord } from "./vocabulary.ts";
import type { Words } from "./words.ts";

/** Bits of the filter for joined characters: here every merge is in it. */
const JOIN_BITS = 22;

/** Builds the image of a tokenizer like Gemma's or Llama 2's: BPE over characters with byte fallback and no pre-tokenizer that cuts. */
export function gemmaImage(json: TokenizerJson, known: KnownConfiguration): ImageUnderWork {
  const { words } = json;
  if (!words) throw new TokenizerError("tokenizer.json has no vocabulary");
  const byteIds = byteTokens(words);
  const cuts = cutTokens(json, known);
  const v = layOut(json, words, byteIds, cuts, writeWord);
  for (let i = 0; i < words.count; i++) {
    if (byteOf(words.bytes, words.offsets[i]!, words.offsets[i + 1]!) >= 0)
      v.flags[words.ids[i]!] = (v.flags[words.ids[i]!]! | Flag.byte) & ~Flag.whole;
  }
  checkMerges(v);
  const trie = addedTrie(json.added_tokens, cuts);
  const layout = new ImageLayout();
  layout.set("rstrip", json.added_tokens.some((t) => t.rstrip) ? 1 : 0);
  layout.set("family", Family.gemma);
  layout.set("prefix", Prefix[known.prefix]);
  layout.set("strip", known.strip ? 1 : 0);
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
  for (let m = 0; m < v.merges.length; m += 3) {
    const left = v.offsets[v.merges[m]! + 1]!;
    kernel.insertAnyJoin(
      codePointAt(v.bytes, startOf(v.bytes, left - 1)),
      codePointAt(v.bytes, v.offsets[v.merges[m + 1]!]!),
    );
  }
  insertTokens(kernel, words, v);
  return image;
}

/** Registers the tokens that merging can give, characters first: merging starts from them. */
function insertTokens(kernel: Kernel, words: Words, v: Vocabulary): void {
  const longer: number[] = [];
  for (let i = 0; i < words.count; i++) {
    const id = words.ids[i]!;
    const from = words.offsets[i]!;
    const to = words.offsets[i + 1]!;
    // an entry with a real space can't be made: the normalizer leaves none
    if (from === to || byteOf(words.bytes, from, to) >= 0 || words.bytes.subarray(from, to).includes(0x20)) continue;
    if (startOf(v.bytes, v.offsets[id + 1]! - 1) === v.offsets[id]) kernel.insertToken(id);
    else longer.push(id);
  }
  for (const id of longer) if (kernel.encodesItself(id)) kernel.insertToken(id);
}

/** The byte that an entry `<0xXX>` stands for, or -1. */
function byteOf(bytes: Uint8Array, from: number, to: number): number {
  if (to - from !== 6 || bytes[from] !== 0x3c || bytes[from + 1] !== 0x30) return -1;
  const match = /^<0x([0-9A-F]{2})>$/.exec(String.fromCharCode(...bytes.subarray(from, to)));
  return match ? Number.parseInt(match[1]!, 16) : -1;
}

/** Byte tokens stand for their byte, the sign for a space (U+2581) for a space. */
const writeWord: WriteWord = (bytes, from, to, out, at) => {
  const byte = byteOf(bytes, from, to);
  if (byte >= 0) {
    out[at] = byte;
    return at + 1;
  }
  let end = at;
  for (let i = from; i < to; i++) {
    if (bytes[i] === 0xe2 && bytes[i + 1] === 0x96 && bytes[i + 2] === 0x81) {
      out[end++] = 0x20;
      i += 2;
    } else out[end++] = bytes[i]!;
  }
  return end;
};

/** Where the character begins that the byte at `at` belongs to. */
function startOf(bytes: Uint8Array, at: number): number {
  let i = at;
  while ((bytes[i]! & 0xc0) === 0x80) i--;
  return i;
}

function codePointAt(bytes: Uint8Array, at: number): number {
  const [a, b, c, d] = [bytes[at]!, bytes[at + 1]! & 63, bytes[at + 2]! & 63, bytes[at + 3]! & 63];
  if (a < 0x80) return a;
  if (a < 0xe0) return ((a & 31) << 6) | b;
  if (a < 0xf0) return ((a & 15) << 12) | (b << 6) | c;
  return ((a & 7) << 18) | (b << 12) | (c << 6) | d;
}

function byteTokens(words: Words): Int32Array {
  const find = (name: string): number => words.find(Buffer.from(name), 0, Buffer.byteLength(name));
  const byteIds = new Int32Array(256);
  for (let b = 0; b < 256; b++) {
    byteIds[b] = find(`<0x${b.toString(16).toUpperCase().padStart(2, "0")}>`);
    // bytes of ASCII characters that are tokens, and those that UTF-8 does not have, never stand alone
    const needed = b < 0x80 ? find(String.fromCharCode(b)) < 0 : b !== 0xc0 && b !== 0xc1 && b < 0xf5;
    if (byteIds[b]! < 0 && needed)
      throw new TokenizerError(`the vocabulary of tokenizer.json has no token for the byte ${b}`);
  }
  return byteIds;
}

function checkMerges(v: Vocabulary): void {
  const bytes = new Set(v.byteIds);
  for (const id of v.merges) if (bytes.has(id)) throw new TokenizerError("a merge of tokenizer.json uses a byte token");
}
