import { TokenizerError } from "../tokenizer.ts";
import type { AddedTrie } from "./added-tokens.ts";
import { MAX_MERGES, type WordName } from "./header.ts";
import { type ImageLayout, type ImageUnderWork, powerOfTwo } from "./layout.ts";
import { countByLength, type Vocabulary } from "./vocabulary.ts";

/** A bucket of merges (kernel/lookup.as.ts), and buckets of the table of hot pairs. */
const BUCKET = 64;
const HOT_BUCKETS = 2 ** 13;
/** Least size of the table of the other pairs, as a power of two: the entries' tags have no more bits. */
const PAIR_BITS = 16;
/** Free entries at the end of an open-addressed table: probing never wraps around. */
const SPARE = 1024;

/** Places the tables that every family has: added tokens, token bytes, lookup by bytes, merges. */
export function placeTokens(layout: ImageLayout, v: Vocabulary, trie: AddedTrie): void {
  const { medium, long } = countByLength(v);
  const merges = v.merges.length / 3;
  if (merges >= MAX_MERGES) throw new TokenizerError(`tokenizer.json has ${merges} merges`);
  const pairBits = Math.max(PAIR_BITS, Math.ceil(Math.log2(merges / (8 * 0.7))));
  const table = (name: WordName, slotsName: WordName, slots: number, entry: number): void => {
    layout.place(name, (slots + SPARE) * entry);
    layout.set(slotsName, slots);
  };
  layout.place("addedFirst", 256);
  layout.place("addedTrie", trie.table.byteLength);
  layout.place("addedIds", trie.ids.byteLength);
  layout.set("addedMask", trie.mask);
  layout.set("addedOne", trie.onlyFirst);
  layout.place("byteIds", 1024);
  layout.place("tokenFilter", 2 ** 18);
  layout.place("pairFilter", 2 ** 18);
  layout.place("hotPairs", HOT_BUCKETS * BUCKET);
  const more = powerOfTwo(merges / 8);
  layout.place("morePairs", more * 16);
  layout.set("moreMask", more - 1);
  const longSlots = powerOfTwo(long * 2);
  layout.place("longVocab", longSlots * 8);
  layout.set("longVocabMask", longSlots - 1);
  layout.set("tokenCount", v.tokenCount);
  layout.place("flags", v.tokenCount);
  layout.place("offsets", (v.tokenCount + 1) * 4);
  layout.place("bytes", v.bytes.length + 16);
  layout.place("pairs", 2 ** pairBits * BUCKET);
  layout.set("pairBits", pairBits);
  table("short", "shortSlots", Math.ceil((v.tokenCount - medium - long) * 1.7), 16);
  table("medium", "mediumSlots", Math.ceil(medium * 1.6), 32);
}

export function writeAdded({ bytes, offset }: ImageUnderWork, trie: AddedTrie): void {
  bytes.set(trie.first, offset("addedFirst"));
  bytes.set(new Uint8Array(trie.table.buffer), offset("addedTrie"));
  bytes.set(new Uint8Array(trie.ids.buffer), offset("addedIds"));
}

export function writeTokens({ bytes, words, offset }: ImageUnderWork, v: Vocabulary): void {
  bytes.set(new Uint8Array(v.byteIds.buffer), offset("byteIds"));
  bytes.set(v.flags, offset("flags"));
  words.set(v.offsets, offset("offsets") >> 2);
  bytes.set(v.bytes, offset("bytes"));
  const long = offset("longVocab");
  const { long: count } = countByLength(v);
  bytes.fill(255, long, long + powerOfTwo(count * 2) * 8);
}

/** Gives the kernel all merges; must come after `init`. */
export function writePairs({ kernel }: ImageUnderWork, v: Vocabulary): void {
  for (let m = 0; m < v.merges.length; m += 3) {
    if (!kernel.insertPair(v.merges[m]!, v.merges[m + 1]!, v.ranks[m / 3]!, v.merges[m + 2]!)) {
      throw new TokenizerError(
        `merge ${m / 3} of tokenizer.json repeats an earlier one, or does not fit into the tables`,
      );
    }
  }
}
