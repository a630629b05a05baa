/**
 * The table image that the kernel works on: a header of 64 little-endian words, then tables at the offsets it names
 * (relative to the image's start, so that an image can lie anywhere).
 */

/** First word of an image. */
export const MAGIC = 0x6b6f7432;
/** Raise it whenever the layout, or what a table holds, changes: older cached images are then rebuilt. */
export const IMAGE_VERSION = 15;
/** Words of the header. */
export const HEADER_WORDS = 64;

/** Header words by name; `kernel.as.ts` reads the same words in `init`. */
export const Word = {
  magic: 0,
  version: 1,
  family: 2,
  maxDigits: 3,
  classBits: 4,
  classIndex: 5,
  classPages: 6,
  short: 7,
  shortSlots: 8,
  medium: 9,
  longVocab: 10,
  longVocabMask: 11,
  offsets: 12,
  bytes: 13,
  wholeOnly: 14,
  wholeOnlyMask: 15,
  byteIds: 16,
  bytePairs: 17,
  pairs: 18,
  pairBits: 19,
  mediumSlots: 21,
  joinFilter: 22,
  joinShift: 23,
  addedTrie: 24,
  addedMask: 25,
  addedIds: 26,
  addedFirst: 27,
  addedOne: 28,
  nfc: 29,
  size: 30,
  tokenCount: 31,
  joinBorders: 33,
  wholeFilter: 34,
  hotPairs: 36,
  morePairs: 37,
  moreMask: 38,
  tokenFilter: 39,
  splits: 40,
  pairFilter: 41,
  asciiJoins: 42,
  flags: 43,
  contractions: 44,
  prefix: 45,
  strip: 46,
  rstrip: 47,
  han: 48,
  tail: 49,
  gaps: 50,
  borderFilter: 51,
} as const;
export type WordName = keyof typeof Word;

/** Pre-tokenizer families, as the kernel numbers them. */
export const Family = { cl100k: 0, o200k: 1, deepseek: 2, gemma: 3, gpt2: 4 } as const;
/** Where Gemma's way puts a space before a section: the kernel's PREFIX_ numbers. */
export const Prefix = { none: 0, each: 1, eachBare: 2, firstBare: 3 } as const;
export type PrefixName = keyof typeof Prefix;
export type FamilyName = keyof typeof Family;

/** Bits of a token's byte in the `flags` table. */
export const Flag = {
  /** left out by `skipSpecialTokens` */
  special: 1,
  /** an added token */
  added: 2,
  /** its bytes are whole UTF-8 characters */
  whole: 4,
  /** a text may be cut behind it: the ids of the parts are those of the whole */
  cut: 8,
  /** stands for a single byte, of which other such tokens beside it make characters (`<0xE4>`) */
  byte: 16,
} as const;

/**
 * Bits of an id in the added-token trie: special, takes the white space before it, that after it, may be cut behind, is looked for in
 * normalized text, is looked for in raw text.
 */
export const SPECIAL_ID = 1 << 30;
export const LSTRIP_ID = 1 << 29;
export const RSTRIP_ID = 1 << 28;
export const CUT_ID = 1 << 27;
export const NORMALIZED_ID = 1 << 26;
export const RAW_ID = 1 << 25;
/** Ids must stay below: a merge's key packs two ids into 40 bits, and one id stands for no token. */
export const MAX_TOKENS = (1 << 20) - 1;
/** Merges must be fewer: 20 bits hold a rank + 1. */
export const MAX_MERGES = (1 << 20) - 1;
