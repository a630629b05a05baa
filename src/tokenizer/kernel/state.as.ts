/** Where the tables and buffers lie, read from the image's header. All addresses and sizes are bytes; `p`, `s`, `e`, `n` stand for start and end. */

export const CL100K: i32 = 0;
export const O200K: i32 = 1;
export const DEEPSEEK: i32 = 2;
export const GEMMA: i32 = 3;
export const GPT2: i32 = 4;

export const PREFIX_EACH: i32 = 1; // before every section
export const PREFIX_EACH_BARE: i32 = 2; // before every section that does not begin with one
export const PREFIX_FIRST_BARE: i32 = 3; // before the text, if it does not begin with one or with an added token
/** Room for what is known of a long piece: 64 entries of 32 bytes. */
export const MEMO_BYTES: usize = 2048;
/** Words that are merged in turn, and the bytes that each takes. */
export const LANES: u32 = 16;
export const LANE: usize = 576;
/** Words that are begun at most before all ids get their places, and the bytes that each takes. */
export const RECORDS: u32 = 128;
export const RECORD: usize = 128;
export const K0: u64 = 0x9e3779b97f4a7c15;
export const K1: u64 = 0xc2b2ae3d27d4eb4f;
export const NONE: u32 = 0xffffffff;
/** No token: stands before and behind the symbols of a word. */
export const NOBODY: u32 = 0xfffff;
export let family: i32 = 0;
export let maxDigits: i32 = 3;
export let han: bool = false; // are runs of Han characters pieces?
export let tail: i32 = 0; // what ends punctuation: 0 nothing, 1 newlines, 2 newlines and slashes
export let gaps: bool = false; // some bytes have no token of their own but the unknown one
export let prefix: i32 = 0; // Gemma's way with a space put before sections: see PREFIX_
export let contractions: bool = true; // does 's belong to the word or stand alone? Without, an apostrophe is punctuation
export let classBits: usize = 0; // class by ASCII byte
export let classIndex: usize = 0; // u16 page by code point >> 8
export let classPages: usize = 0;
export let short: usize = 0; // tokens of up to 8 bytes, 16-byte entries: key 8, id, length
export let shortSlots: u64 = 0;
export let medium: usize = 0; // tokens of 9 to 16 bytes, 32-byte entries: key 16, id, -, -, length
export let mediumSlots: u64 = 0;
export let longVocab: usize = 0; // hash, id
export let longVocabMask: u32 = 0;
export let tokenOffsets: usize = 0;
export let tokenBytes: usize = 0;
export let wholeOnly: usize = 0; // hash, id: tokens that only ignore_merges can produce
export let wholeOnlyMask: u32 = 0;
export let wholeFilter: usize = 0; // 4096 bits by the hash of the first 16 bytes
export let byteIds: usize = 0;
export let bytePairs: usize = 0; // rank + 1 and id by two bytes
export let pairs: usize = 0; // merges by their parts, buckets of 8 entries of 8 bytes: see lookup.as.ts
export let pairBits: u64 = 0; // log2 of the number of buckets
export let morePairs: usize = 0; // 16-byte entries: key, entry
export let moreMask: u32 = 0;
export let hotPairs: usize = 0; // the same for merges whose parts both have low ids: buckets that stay near
export let tokenFilter: usize = 0; // 2 Mbit: may these bytes be a token of up to 16 bytes?
export let pairFilter: usize = 0; // 2^15 words of 64 bits: may two tokens, one of a higher id, be a merge?
export let borderFilter: usize = 0; // 2^11 words of 64 bits: what merges join other ASCII bytes, see borders.as.ts; 0 if words are not cut
export let splits: usize = 0; // u64 per token, its last merge: rank + 1 24 (0: a single byte), left 20, right 20; -1 if search may not use it
export let joinFilter: usize = 0; // pairs of neighbouring characters that some merge joins
export let joinShift: u32 = 0;
export let joinBorders: usize = 0; // byte by (last 6 bits of a character, low 4 bits of the next one's first byte): some merge of partial characters joins there
export let added: usize = 0; // trie: key, next
export let addedMask: u32 = 0;
export let addedIds: usize = 0;
export let addedFirst: usize = 0;
export let addedOne: i32 = -1; // the only first byte of added tokens, or -1
export let words: usize = 0; // cache, 2-way sets of 32-byte entries: key 16, 3 ids, length << 8 | count
export let wordsShift: u32 = 0;
export let wordMarks: usize = 0; // a byte for each of its entries: most words that are not in it are known by this
export let longWords: usize = 0; // cache, direct mapped
export let longWordsMask: u32 = 0;
export let scratch: usize = 0;
let scratchSize: usize = 0;
export let lanes: usize = 0; // words that are merged in turn
export let records: usize = 0; // what these gave
export let probes: usize = 0; // pairs that are looked up together: two for each word, 32 bytes each
export let noPairs: usize = 0; // an empty bucket that stays near
export let memo: usize = 0; // windows of a long piece
export let result: usize = 0; // ids of the last merge
export let asciiJoins: usize = 0; // Gemma: byte by two ASCII characters

/** Takes the image at `header`; `cache` is zeroed room for 2^wordBits words (32 bytes each) and 2^longBits long words (256 bytes each), and a byte for each word. */
export function init(header: usize, cache: usize, wordBits: i32, longBits: i32): void {
  family = load<i32>(header, 8);
  maxDigits = load<i32>(header, 12);
  contractions = load<u32>(header, 176) != 0;
  prefix = load<i32>(header, 180);
  han = load<i32>(header, 192) != 0;
  tail = load<i32>(header, 196);
  gaps = load<i32>(header, 200) != 0;
  classBits = header + load<u32>(header, 16);
  classIndex = header + load<u32>(header, 20);
  classPages = header + load<u32>(header, 24);
  short = header + load<u32>(header, 28);
  shortSlots = load<u32>(header, 32);
  medium = header + load<u32>(header, 36);
  mediumSlots = load<u32>(header, 84);
  longVocab = header + load<u32>(header, 40);
  longVocabMask = load<u32>(header, 44);
  tokenOffsets = header + load<u32>(header, 48);
  tokenBytes = header + load<u32>(header, 52);
  wholeOnly = header + load<u32>(header, 56);
  wholeOnlyMask = load<u32>(header, 60);
  byteIds = header + load<u32>(header, 64);
  bytePairs = header + load<u32>(header, 68);
  pairs = header + load<u32>(header, 72);
  pairBits = load<u32>(header, 76);
  joinFilter = header + load<u32>(header, 88);
  joinShift = load<u32>(header, 92);
  joinBorders = header + load<u32>(header, 132);
  wholeFilter = header + load<u32>(header, 136);
  morePairs = header + load<u32>(header, 148);
  moreMask = load<u32>(header, 152);
  hotPairs = header + load<u32>(header, 144);
  tokenFilter = header + load<u32>(header, 156);
  splits = header + load<u32>(header, 160);
  pairFilter = header + load<u32>(header, 164);
  asciiJoins = header + load<u32>(header, 168);
  borderFilter = load<u32>(header, 204) ? header + load<u32>(header, 204) : 0;
  added = header + load<u32>(header, 96);
  addedMask = load<u32>(header, 100);
  addedIds = header + load<u32>(header, 104);
  addedFirst = header + load<u32>(header, 108);
  addedOne = load<i32>(header, 112);
  words = cache;
  wordsShift = 32 - (wordBits - 1);
  longWords = cache + (<usize>32 << wordBits);
  wordMarks = longWords + (<usize>256 << longBits);
  longWordsMask = (1 << longBits) - 1;
  reserve(4096);
  memo = scratch + 65536 - MEMO_BYTES; // behind what merging a window takes
  lanes = memo - <usize>LANES * LANE;
  records = lanes - <usize>RECORDS * RECORD;
  probes = records - <usize>LANES * 64 - 32;
  noPairs = (probes & ~63) - 64;
  scratchSize = noPairs - scratch;
}

/**
 * Where ids may be written at most: what else takes time lowers it. So one comparison watches over both; an id (4 bytes) stands for
 * 32 ns, a byte for 8.
 */
export let ceiling: usize = 0;
let limited: bool = false;

/** Starts a text whose ids go to `out`, with a budget of about as many nanoseconds; 0 has no end. */
export function setBudget(out: usize, budget: i32): void {
  limited = budget > 0;
  ceiling = limited ? out + <usize>(budget >> 3) : <usize>-1;
}

/** Takes the nanoseconds that something costs off the budget; false if less was left, with ids up to o. */
export function spend(cost: i32, o: usize): bool {
  if (!limited) return true;
  const bytes = <usize>(cost >> 3);
  ceiling = ceiling > bytes ? ceiling - bytes : 0;
  return o < ceiling;
}

/** May ids go up to o? If not, the budget is used up: what is written without merging is bounded by its ids alone. */
export function fits(o: usize): bool {
  if (o < ceiling) return true;
  ceiling = 0;
  return false;
}

/** Scratch of at least `size` at the end of memory; what it held is lost. */
export function reserve(size: usize): void {
  if (size <= scratchSize) return;
  let want: usize = 65536;
  while (want < size) want <<= 1;
  const page = memory.grow(<i32>(want >>> 16));
  if (page < 0) unreachable();
  scratch = <usize>page << 16;
  scratchSize = want;
}

/** Says where the ids of the last merge lie. */
@inline
export function setResult(at: usize): void {
  result = at;
}
