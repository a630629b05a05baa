/** Tokens by their bytes and merges by their parts. */
import {
  hotPairs, K0, K1, medium, mediumSlots, moreMask, morePairs, noPairs, pairBits, pairFilter, pairs, short, shortSlots, tokenBytes, tokenFilter, tokenOffsets,
} from "./state.as";

@inline
export function hash8(key: u64): u32 {
  return <u32>((key * K0) >> 32);
}

@inline
export function hash16(k0: u64, k1: u64): u32 {
  return <u32>((k0 * K0 + k1 * K1) >> 32);
}

/** Hash of any number of bytes. */
export function hashLong(s: usize, len: i32): u32 {
  let h: u64 = <u64>len * K1;
  const e = s + <usize>len;
  let p = s;
  for (; p + 8 <= e; p += 8) {
    h = (h ^ load<u64>(p)) * K0;
    h ^= h >> 29;
  }
  let tail: u64 = 0;
  for (; p < e; p++) tail = (tail << 8) | <u64>load<u8>(p);
  h = (h ^ tail) * K1;
  return <u32>(h >> 32);
}

export function same(a: usize, b: usize, len: i32): bool {
  const e = a + <usize>len;
  for (; a + 8 <= e; a += 8, b += 8) if (load<u64>(a) != load<u64>(b)) return false;
  for (; a < e; a++, b++) if (load<u8>(a) != load<u8>(b)) return false;
  return true;
}

export function findTokenBy(h: u32, table: usize, mask: u32, s: usize, len: i32): i32 {
  let i = h & mask;
  while (true) {
    const at = table + (<usize>i << 3);
    const id = load<i32>(at, 4);
    if (id < 0) return -1;
    if (load<u32>(at) == h) {
      const from = load<u32>(tokenOffsets + (<usize>id << 2));
      if (<i32>(load<u32>(tokenOffsets + (<usize>id << 2), 4) - from) == len && same(tokenBytes + from, s, len)) return id;
    }
    i = (i + 1) & mask;
  }
}

/** What places a token's text in `tokenFilter`. */
@inline
function tokenMix(h: u32, len: i32): u32 {
  return h + <u32>len * 0x9e3779b1;
}

@inline
function tokenBits(g: u32): u64 {
  return (<u64>1 << <u64>((g >> 11) & 63)) | (<u64>1 << <u64>((g >> 5) & 63)) | (<u64>2 << <u64>((g & 31) << 1));
}

export function setTokenBit(h: u32, len: i32): void {
  const g = tokenMix(h, len);
  const at = tokenFilter + (<usize>(g >> 17) << 3);
  store<u64>(at, load<u64>(at) | tokenBits(g));
}

@inline
function hasTokenBit(h: u32, len: i32): bool {
  const g = tokenMix(h, len);
  const bits = tokenBits(g);
  return (load<u64>(tokenFilter + (<usize>(g >> 17) << 3)) & bits) == bits;
}

/** Token of exactly these 2 to 16 bytes, or -1. */
@inline
export function tokenAt(s: usize, len: i32): i32 {
  if (len <= 8) {
    const key = load<u64>(s) << (64 - (<u64>len << 3));
    const h = hash8(key);
    return hasTokenBit(h, len) ? shortToken(key, h, len) : -1;
  }
  const k0 = load<u64>(s), k1 = load<u64>(s + <usize>len - 8);
  const h = hash16(k0, k1);
  return hasTokenBit(h, len) ? mediumToken(k0, k1, h, len) : -1;
}

export function shortToken(key: u64, h: u32, len: i32): i32 {
  let at = short + (<usize>((<u64>h * shortSlots) >> 32) << 4);
  while (load<u32>(at, 12)) {
    if (load<u64>(at) == key && load<u32>(at, 12) == len) return load<i32>(at, 8);
    at += 16;
  }
  return -1;
}

function mediumToken(k0: u64, k1: u64, h: u32, len: i32): i32 {
  let at = medium + (<usize>((<u64>h * mediumSlots) >> 32) << 5);
  while (load<u32>(at, 28)) {
    if (load<u64>(at) == k0 && load<u64>(at, 8) == k1 && load<u32>(at, 28) == len) return load<i32>(at, 16);
    at += 32;
  }
  return -1;
}

/*
 * Merges lie in buckets of one cache line: 8 entries of rank + 1 (20 bits), id of the result (20) and tag (24), free ones 0 and last.
 * The product with an odd number, cut to the width of the key, is a bijection: its top bits choose the bucket, the others are the tag,
 * so within a bucket an equal tag is an equal pair. Pairs of two ids below HOT_IDS have a smaller table. What a full bucket does not
 * take lies in `morePairs`: key and entry.
 */
const HOT_ID_BITS: u64 = 10;
const HOT_BITS: u64 = 13;
const HOT_IDS: u32 = 1 << 10;
const TAG: u64 = 0xffffff;

@inline
export function pairHash(x: u32, y: u32): u64 {
  const hot = (x | y) < HOT_IDS;
  const key = (<u64>x << select<u64>(HOT_ID_BITS, 20, hot)) | <u64>y;
  return (key * K0) << select<u64>(64 - 2 * HOT_ID_BITS, 24, hot);
}

@inline
export function pairBucket(x: u32, y: u32, h: u64): usize {
  const hot = (x | y) < HOT_IDS;
  return select<usize>(hotPairs, pairs, hot) + (<usize>(h >> (64 - select<u64>(HOT_BITS, pairBits, hot))) << 6);
}

@inline
export function pairTag(x: u32, y: u32, h: u64): u64 {
  return (h >> (40 - select<u64>(HOT_BITS, pairBits, (x | y) < HOT_IDS))) & TAG;
}

/** Bits of a pair in its word of `pairFilter`. */
@inline
function filterBits(h: u64): u64 {
  return (<u64>1 << ((h >> 43) & 63)) | (<u64>1 << ((h >> 37) & 63)) | (<u64>1 << ((h >> 31) & 63));
}

/** The bucket of (x, y) if it may hold the pair, else one that is near and empty: most pairs are no merge, and their memory is far. */
@inline
export function likelyBucket(x: u32, y: u32, h: u64): usize {
  const bits = filterBits(h);
  const word = load<u64>(pairFilter + (<usize>(h >> 49) << 3));
  return select<usize>(pairBucket(x, y, h), noPairs, (<u32>((word & bits) == bits) | <u32>((x | y) < HOT_IDS)) != 0);
}

/** The entry of the merge (x, y), or 0. No branch depends on what is found. */
@inline
export function findPair(x: u32, y: u32): u64 {
  const h = pairHash(x, y);
  return findAt(pairBucket(x, y, h), pairTag(x, y, h), x, y);
}

/** The same with bucket and tag known. */
@inline
export function findAt(at: usize, tag: u64, x: u32, y: u32): u64 {
  const found = inBucket(at, tag);
  return <u32>(found == 0) & <u32>(load<u64>(at, 56) != 0) ? findMore(x, y) : found;
}

@inline
function inBucket(at: usize, tag: u64): u64 {
  const mask = i64x2.splat(TAG), t = i64x2.splat(tag);
  const a = v128.load(at), b = v128.load(at, 16), c = v128.load(at, 32), d = v128.load(at, 48);
  const ab = v128.or(v128.and(a, v128.eq<i64>(v128.and(a, mask), t)), v128.and(b, v128.eq<i64>(v128.and(b, mask), t)));
  const cd = v128.or(v128.and(c, v128.eq<i64>(v128.and(c, mask), t)), v128.and(d, v128.eq<i64>(v128.and(d, mask), t)));
  const all = v128.or(ab, cd);
  return v128.extract_lane<u64>(all, 0) | v128.extract_lane<u64>(all, 1);
}

/** Place of the pair in `morePairs`, or the free one where it belongs. */
@inline
function moreAt(x: u32, y: u32): usize {
  const key = (<u64>x << 20) | <u64>y;
  let i = <u32>((key * K1) >> 32);
  while (true) {
    const at = morePairs + (<usize>(i & moreMask) << 4);
    if (!load<u64>(at, 8) || load<u64>(at) == key) return at;
    i++;
  }
}

function findMore(x: u32, y: u32): u64 {
  return load<u64>(moreAt(x, y), 8);
}

let moreCount: u32 = 0;

/** Adds a merge that is not there yet. False if there is no room. */
export function insertEntry(x: u32, y: u32, rank: u32, id: u32): bool {
  const h = pairHash(x, y);
  const entry = (<u64>(rank + 1) << 44) | (<u64>id << 24) | pairTag(x, y, h);
  const bucket = pairBucket(x, y, h);
  const word = pairFilter + (<usize>(h >> 49) << 3);
  store<u64>(word, load<u64>(word) | filterBits(h));
  for (let at = bucket; at < bucket + 64; at += 8) {
    if (load<u64>(at)) continue;
    store<u64>(at, entry);
    return true;
  }
  if (++moreCount > (moreMask >> 1)) return false;
  const at = moreAt(x, y);
  store<u64>(at, (<u64>x << 20) | <u64>y);
  store<u64>(at, entry, 8);
  return true;
}

/** Rank + 1 of a merge's entry; 0 for no entry. */
@inline
export function pairRank(entry: u64): u32 {
  return <u32>(entry >> 44);
}

/** Id that a merge makes. */
@inline
export function pairId(entry: u64): u32 {
  return <u32>(entry >> 24) & 0xfffff;
}
