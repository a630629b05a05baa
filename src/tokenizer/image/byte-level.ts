import { TokenizerError } from "../tokenizer.ts";
import { addedTrie } from "./added-tokens.ts";
import { byteAlphabet, NO_BYTE } from "./byte-alphabet.ts";
import { classPages, classTable } from "./classes.ts";
import { cutTokens } from "./cuts.ts";
import { Family, Flag, Word } from "./header.ts";
import { joinedCharacters } from "./joins.ts";
import { ImageLayout, type ImageUnderWork } from "./layout.ts";
import { type KnownConfiguration, missingBytes, unknownId } from "./recognise.ts";
import { placeTokens, writeAdded, writePairs, writeTokens } from "./tables.ts";
import type { AddedTokenJson, TokenizerJson } from "./tokenizer-json.ts";
import { layOut, type Vocabulary } from "./vocabulary.ts";

/** Bits of the filter for joined characters. */
const JOIN_BITS = 20;
/** Room for tokens that only `ignore_merges` can produce. */
const WHOLE_SLOTS = 4096;

/** Builds the image of a byte-level BPE tokenizer. Throws `TokenizerError` naming what is wrong with the vocabulary. */
export function byteLevelImage(json: TokenizerJson, known: KnownConfiguration): ImageUnderWork {
  if (known.family === "gemma") throw new TokenizerError("not a byte-level tokenizer");
  const cuts = cutTokens(json, known);
  const v = byteLevelVocabulary(json, cuts);
  const trie = addedTrie(json.added_tokens, cuts, known.nfc);
  const classes = classTable(known);
  const { index, pages } = classPages(classes, known.nfc);

  const layout = new ImageLayout();
  layout.set("rstrip", json.added_tokens.some((t) => t.rstrip) ? 1 : 0);
  layout.set("family", Family[known.family]);
  layout.set("maxDigits", known.maxDigits);
  layout.set("contractions", known.contractions ? 1 : 0);
  layout.set("han", known.han ? 1 : 0);
  layout.set("tail", known.tail);
  layout.set("gaps", missingBytes(json).length > 0 ? 1 : 0);
  layout.set("nfc", known.nfc ? 1 : 0);
  layout.place("classBits", 256);
  layout.place("classIndex", index.byteLength);
  layout.place("classPages", pages.length);
  layout.place("joinBorders", 1024);
  layout.place("wholeFilter", 512);
  layout.place("joinFilter", 2 ** JOIN_BITS / 8);
  layout.set("joinShift", 32 - JOIN_BITS);
  layout.place("bytePairs", 65536 * 8);
  if (missingBytes(json).length === 0) layout.place("borderFilter", 2 ** 14);
  layout.place("splits", v.tokenCount * 8);
  placeTokens(layout, v, trie);
  layout.place("wholeOnly", WHOLE_SLOTS * 8);
  layout.set("wholeOnlyMask", WHOLE_SLOTS - 1);

  const image = layout.open();
  const { bytes, words, kernel, offset } = image;
  bytes.set(classes.subarray(0, 128), offset("classBits"));
  bytes.set(new Uint8Array(index.buffer), offset("classIndex"));
  bytes.set(pages, offset("classPages"));
  bytes.fill(255, offset("splits"), offset("splits") + v.tokenCount * 8);
  bytes.fill(255, offset("wholeOnly"), offset("wholeOnly") + WHOLE_SLOTS * 8);
  writeAdded(image, trie);
  writeTokens(image, v);
  writeBytePairs(v, words, offset("bytePairs"));
  image.init();
  writePairs(image, v);
  joinedCharacters(
    v,
    (a, b) => kernel.insertJoin(a, b),
    (tail, lead) => {
      bytes[offset("joinBorders") + ((tail << 4) | lead)] = 1;
    },
  );
  const whole = insertTokens(image, v, json.model.ignore_merges === true);
  if (!whole) words[Word.wholeOnlyMask] = 0;
  return image;
}

/** Registers every token that its own text encodes to; returns how many only `ignore_merges` gives. */
function insertTokens({ kernel }: ImageUnderWork, v: Vocabulary, ignoreMerges: boolean): number {
  const byLength: number[][] = [];
  let whole = 0;
  for (let id = 0; id < v.tokenCount; id++) {
    if (v.offsets[id] === v.offsets[id + 1] || v.flags[id]! & Flag.added) continue;
    if (kernel.encodesItself(id)) {
      kernel.insertToken(id);
      (byLength[v.offsets[id + 1]! - v.offsets[id]!] ??= []).push(id);
    } else if (ignoreMerges) {
      if (++whole > WHOLE_SLOTS / 2)
        throw new TokenizerError("too many tokens of tokenizer.json can't be reached by merges");
      kernel.insertWholeOnly(id);
    }
  }
  // a token's parts come before it
  for (const ids of byLength) for (const id of ids ?? []) kernel.insertSplit(id);
  return whole;
}

/** Rank + 1 and result by two bytes. */
function writeBytePairs(v: Vocabulary, words: Uint32Array, at: number): void {
  const byteOf = new Int32Array(v.tokenCount).fill(-1);
  v.byteIds.forEach((id, b) => {
    byteOf[id] = b;
  });
  for (let m = v.merges.length - 3; m >= 0; m -= 3) {
    const x = byteOf[v.merges[m]!]!;
    const y = byteOf[v.merges[m + 1]!]!;
    if (x < 0 || y < 0) continue;
    words.set([v.ranks[m / 3]! + 1, v.merges[m + 2]!], (at >> 2) + ((x << 8) | y) * 2);
  }
}

function byteLevelVocabulary(json: TokenizerJson, cuts: readonly AddedTokenJson[]): Vocabulary {
  const { words } = json;
  if (!words) throw new TokenizerError("tokenizer.json has no vocabulary");
  const table = byteAlphabet();
  const byteIds = new Int32Array(256).fill(-1);
  for (const [unit, byte] of table.entries()) {
    if (byte === NO_BYTE) continue;
    const sign = Buffer.from(String.fromCharCode(unit));
    byteIds[byte] = words.find(sign, 0, sign.length);
  }
  for (const byte of missingBytes(json)) byteIds[byte] = unknownId(json)!;
  const added = new Set(json.added_tokens.map((t) => t.content));
  return layOut(json, words, byteIds, cuts, (bytes, from, to, out, at) => {
    let end = at;
    for (let i = from; i < to; i++) {
      const lead = bytes[i]!;
      // the alphabet ends below U+0800
      const byte = lead < 0x80 ? table[lead]! : lead < 0xe0 ? table[((lead & 31) << 6) | (bytes[++i]! & 63)]! : NO_BYTE;
      if (byte === NO_BYTE) return ownText(bytes.subarray(from, to), added, out, at);
      out[end++] = byte;
    }
    return end;
  });
}

const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** An entry outside the byte alphabet must be an added token: it stands for its own text. */
function ownText(entry: Uint8Array, added: ReadonlySet<string>, out: Uint8Array, at: number): number {
  if (!added.has(decode(entry))) {
    throw new TokenizerError(
      `the vocabulary entry ${JSON.stringify(decode(entry))} of tokenizer.json is not byte-level`,
    );
  }
  out.set(entry, at);
  return at + entry.length;
}
