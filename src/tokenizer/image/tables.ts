import { TokenizerError } from "../tokenizer.ts";
import type { AddedTrie } from "./added-tokens.ts";
import type { WordName } from "./header.ts";
import { type ImageLayout, type ImageUnderWork, powerOfTwo } from "./layout.ts";
import { countByLength, type Vocabulary } from "./vocabulary.ts";

/** Merges of lower rank go to a small table of their own. */
const HOT_RANKS = 24_000;
/** Free entries at the end of an open-addressed table: probing never wraps around. */
const SPARE = 1024;

/** Places the tables that every family has: added tokens, token bytes, lookup by bytes, merges. */
export function placeTokens(layout: ImageLayout, v: Vocabulary, trie: AddedTrie): void {
  const { medium, long } = countByLength(v);
  const merges = v.merges.length / 3;
  const hotRanks = Math.min(HOT_RANKS, merges);
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
  table("hotPairs", "hotSlots", Math.ceil(hotRanks * 1.7), 16);
  layout.set("hotRanks", hotRanks);
  const longSlots = powerOfTwo(long * 2);
  layout.place("longVocab", longSlots * 8);
  layout.set("longVocabMask", longSlots - 1);
  layout.place("pairFilter", 2 ** 19);
  layout.set("tokenCount", v.tokenCount);
  layout.place("flags", v.tokenCount);
  layout.place("offsets", (v.tokenCount + 1) * 4);
  layout.place("bytes", v.bytes.length + 16);
  table("pairs", "pairSlots", Math.ceil((merges - hotRanks) * 1.6), 16);
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
      throw new TokenizerError(`merge ${m / 3} of tokenizer.json repeats an earlier one`);
    }
  }
}
