/**
 * Words that are neither tokens nor in the cache are merged later, several in turn, so that their waits for memory fall together. Until
 * then each has a place among the ids as if it were one token.
 */
import { findAt, hash16, hash8, likelyBucket, pairHash, pairId, pairRank, pairTag } from "./lookup.as";
import { byteIds, bytePairs, LANE, LANES, lanes, NOBODY, NONE, wordMarks, words } from "./state.as";

/** Bytes of the longest word that is merged in turn. */
export const LANE_BYTES: i32 = 30;
// Of a word, by index: its symbols' ids; rank << 6 | index of the merge with the next one; the id that this makes.
// The place before the first may be written, and the one behind the last symbol.
const SYMBOLS: usize = 16;
const RANKS: usize = 144;
const MADE: usize = 276;
const ALIVE: usize = 400; // by index: a symbol begins here; also behind the last one
const LENGTH: usize = 404;
const INDEX: usize = 408; // of the symbol that was made last, and of the one before it
const LEFT: usize = 412;
// the pairs of these two with what follows: bucket, tag
const PAIR: usize = 416;
const LEFT_PAIR: usize = 440;
const SET: usize = 464; // the word's place in the cache and its key there, its place among the ids, the number of its ids
const OUT: usize = 468;
const COUNT: usize = 472;
const KEY: usize = 480;
/** Ranks from here on are no merges. */
const NO_RANK: u32 = 0xffffffc0;

let started: u32 = 0;

/** Forgets what was begun. */
export function clearMerges(): void {
  started = 0;
}

/**
 * Will merge the 2 to 30 bytes at s, put their ids where o is, and both in the cache at `set`; returns the new o. The keys are those of
 * `words`; for more than 16 bytes s and the hash of `longWords`.
 */
export function mergeLater(s: usize, len: i32, k0: u64, k1: u64, set: usize, o: usize): usize {
  if (started == LANES) o = mergeAll(o);
  const lane = lanes + <usize>started * LANE;
  started++;
  store<u64>(lane, k0, KEY);
  store<u64>(lane, k1, KEY + 8);
  store<u32>(lane, <u32>set, SET);
  store<u32>(lane, <u32>o, OUT);
  store<u32>(lane, len, LENGTH);
  store<u32>(lane, (<u32>2 << len) - 1, ALIVE);
  const none = i8x16.splat(-1);
  v128.store(lane, none, RANKS);
  v128.store(lane, none, RANKS + 16);
  v128.store(lane, none, RANKS + 32);
  v128.store(lane, none, RANKS + 48);
  if (len > 16) {
    v128.store(lane, none, RANKS + 64);
    v128.store(lane, none, RANKS + 80);
    v128.store(lane, none, RANKS + 96);
    v128.store(lane, none, RANKS + 112);
  }
  const n = <usize>len;
  let before: usize = load<u8>(s);
  store<u32>(lane, load<u32>(byteIds + (before << 2)), SYMBOLS);
  for (let i: usize = 1; i < n; i++) {
    const y: usize = load<u8>(s + i);
    const at = lane + (i << 2);
    store<u32>(at, load<u32>(byteIds + (y << 2)), SYMBOLS);
    const pair = bytePairs + (((before << 8) | y) << 3);
    store<u32>(at - 4, ((load<u32>(pair) - 1) << 6) | <u32>(i - 1), RANKS);
    store<u32>(at - 4, load<u32>(pair, 4), MADE);
    before = y;
  }
  store<u32>(lane, NOBODY, SYMBOLS - 4);
  store<u32>(lane + (n << 2), NOBODY, SYMBOLS);
  return o + 4;
}

/** Merges what was begun and puts the ids in their places, the last of which is before o; returns the new o. */
export function mergeAll(o: usize): usize {
  let active: u32 = (<u32>1 << started) - 1;
  while (active) {
    for (let m = active; m; m &= m - 1) {
      if (!mergeOne(lanes + <usize>ctz(m) * LANE)) active ^= m & (0 - m);
    }
    for (let m = active; m; m &= m - 1) rankNeighbours(lanes + <usize>ctz(m) * LANE);
  }
  let more: usize = 0;
  for (let i: u32 = 0; i < started; i++) more += finish(lanes + <usize>i * LANE) - 1;
  const end = o + (more << 2);
  let to = end;
  while (started) {
    const lane = lanes + <usize>--started * LANE;
    const place = <usize>load<u32>(lane, OUT);
    const between = o - place - 4;
    to -= between;
    memory.copy(to, place + 4, between);
    const n = <usize>load<u32>(lane, COUNT);
    to -= n << 2;
    for (let k: usize = 0; k < n; k++) store<u32>(to + (k << 2), load<u32>(lane + (k << 2), SYMBOLS));
    o = place;
  }
  return end;
}

/** The merge of lowest rank, and a first look at the memory where its neighbours' ranks are. False if there is none. */
@inline
function mergeOne(lane: usize): bool {
  const R = lane + RANKS;
  let v = v128.min<u32>(v128.min<u32>(v128.load(R), v128.load(R, 16)), v128.min<u32>(v128.load(R, 32), v128.load(R, 48)));
  if (load<u32>(lane, LENGTH) > 16) {
    v = v128.min<u32>(v, v128.min<u32>(v128.min<u32>(v128.load(R, 64), v128.load(R, 80)), v128.min<u32>(v128.load(R, 96), v128.load(R, 112))));
  }
  v = v128.min<u32>(v, v128.shuffle<u32>(v, v, 2, 3, 0, 1));
  v = v128.min<u32>(v, v128.shuffle<u32>(v, v, 1, 0, 3, 2));
  const best = v128.extract_lane<u32>(v, 0);
  if (best >= NO_RANK) return false;
  const i = best & 63;
  const at = lane + (<usize>i << 2);
  const id = load<u32>(at, MADE);
  let alive = load<u32>(lane, ALIVE);
  const j = i + 1 + ctz(alive >> (i + 1)); // the symbol taken in
  alive ^= <u32>1 << j;
  const k = i + 1 + ctz(alive >> (i + 1));
  const h = 31 - clz(alive & ((<u32>1 << i) - 1)); // -1 if there is none
  store<u32>(at, id, SYMBOLS);
  store<u32>(lane + (<usize>j << 2), NONE, RANKS);
  store<u32>(lane, alive, ALIVE);
  store<u32>(lane, i, INDEX);
  store<u32>(lane, h, LEFT);
  const before = load<u32>(lane + (<usize>h << 2), SYMBOLS), after = load<u32>(lane + (<usize>k << 2), SYMBOLS);
  // a pair with nobody is always looked for at the same place: no memory is waited for
  touch(lane + PAIR, select<u32>(NOBODY, id, after == NOBODY), after);
  touch(lane + LEFT_PAIR, before, select<u32>(NOBODY, id, before == NOBODY));
  return true;
}

@inline
function touch(to: usize, x: u32, y: u32): void {
  const h = pairHash(x, y);
  const bucket = likelyBucket(x, y, h);
  store<u32>(to, <u32>bucket);
  store<u32>(to, x, 4);
  store<u64>(to, pairTag(x, y, h), 8);
  store<u32>(to, y, 16);
  store<u32>(to, load<u32>(bucket), 20);
}

@inline
function rankNeighbours(lane: usize): void {
  rank(lane, load<i32>(lane, INDEX), lane + PAIR);
  rank(lane, load<i32>(lane, LEFT), lane + LEFT_PAIR);
}

@inline
function rank(lane: usize, i: i32, pair: usize): void {
  const entry = findAt(<usize>load<u32>(pair), load<u64>(pair, 8), load<u32>(pair, 4), load<u32>(pair, 16));
  const at = lane + (<usize>i << 2);
  store<u32>(at, ((pairRank(entry) - 1) << 6) | <u32>i, RANKS);
  store<u32>(at, pairId(entry), MADE);
}

/** Moves the ids of a word together and keeps them in the cache; returns their number. */
function finish(lane: usize): usize {
  const len = load<u32>(lane, LENGTH);
  let n: usize = 0;
  for (let m = load<u32>(lane, ALIVE) ^ (<u32>1 << len); m; m &= m - 1, n++) {
    store<u32>(lane + (n << 2), load<u32>(lane + (<usize>ctz(m) << 2), SYMBOLS), SYMBOLS);
  }
  store<u32>(lane, <u32>n, COUNT);
  const set = <usize>load<u32>(lane, SET);
  const k0 = load<u64>(lane, KEY), k1 = load<u64>(lane, KEY + 8);
  if (len > 16) rememberLong(set, <u32>k1, <usize>k0, <i32>len, lane + SYMBOLS, <i32>n);
  else remember(set, k0, k1, <i32>len, lane + SYMBOLS, <i32>n);
  return n;
}

// An entry of `longWords`: hash, length, count, 116 key bytes, 32 ids
export const LONG_ENTRY: usize = 256;
export const LONG_BYTES: usize = 12;
export const LONG_RESULT: usize = 128;
export const LONG_KEY: i32 = 116;
const LONG_IDS: i32 = 32;

/** Keeps the n ids of a long word in the cache at its entry, if there is room. */
export function rememberLong(at: usize, h: u32, s: usize, len: i32, ids: usize, n: i32): void {
  if (len > LONG_KEY || n > LONG_IDS) return;
  store<u32>(at, h);
  store<u32>(at, len, 4);
  store<u32>(at, n, 8);
  memory.copy(at + LONG_BYTES, s, len);
  memory.copy(at + LONG_RESULT, ids, <usize>n << 2);
}

/** What tells words of one set apart, mostly, in a table that stays near. */
@inline
export function wordMark(h: u32): u32 {
  return ((h * 0x9e3779b1) >> 4) & 255;
}

/** Keeps the n ids of a word in the cache, if they are at most 3. */
export function remember(set: usize, k0: u64, k1: u64, len: i32, ids: usize, n: i32): void {
  if (n > 3) return;
  const marks = wordMarks + ((set - words) >> 5);
  store<u16>(marks, (load<u16>(marks) << 8) | <u16>wordMark(len <= 8 ? hash8(k0) : hash16(k0, k1)));
  // the first place is filled first: an empty one may take the second's; no branch waits for memory
  v128.store(set, v128.load(set), 32);
  v128.store(set, v128.load(set, 16), 48);
  store<u64>(set, k0);
  store<u64>(set, k1, 8);
  store<u32>(set, load<u32>(ids), 16);
  store<u32>(set, load<u32>(ids, 4), 20);
  store<u32>(set, load<u32>(ids, 8), 24);
  store<u32>(set, (len << 8) | n, 28);
}
