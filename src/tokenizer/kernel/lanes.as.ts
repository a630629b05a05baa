/**
 * Words that are neither tokens nor in the cache are merged later, several in turn, so that their waits for memory fall together. Until
 * then each has a place among the ids as if it were one token. A word that is done makes room for the next one, so that many are always
 * under way; its ids wait in a record of its own.
 */
import { borders } from "./borders.as";
import { findAt, hash16, hash8, likelyBucket, pairHash, pairId, pairRank, pairTag } from "./lookup.as";
import { byteIds, bytePairs, LANE, LANES, lanes, NOBODY, NONE, probes, RECORD, records, RECORDS, wordMarks, words } from "./state.as";

/** Bytes of the longest word that is merged in turn. */
export const LANE_BYTES: i32 = 30;
// Of a word, by index: its symbols' ids; rank << 6 | index of the merge with the next one; the id that this makes.
// The place before the first may be written, and the one behind the last symbol.
const SYMBOLS: usize = 16;
const RANKS: usize = 144;
const MADE: usize = 276;
const ALIVE: usize = 400; // by index: a symbol begins here; also behind the last one
const LENGTH: usize = 404;
const SET: usize = 408; // the word's place in the cache and its key there
const KEY: usize = 416;
const DONE: usize = 432; // its record
// Of a pair that is looked up: hash, parts, bucket, index in its word, the word
const PROBE: usize = 32;
// Of a word that is begun: its place among the ids, the number of its ids, these
const COUNT: usize = 4;
const RESULT: usize = 8;
/** Ranks from here on are no merges. */
const NO_RANK: u32 = 0xffffffc0;
const ALL: u32 = <u32>((<u64>1 << LANES) - 1);

/** Words that were ever begun. */
export let begun: u32 = 0;
/** Borders of the word that was not begun because it may be cut there. */
export let cuts: u32 = 0;
let started: u32 = 0; // records in use
let active: u32 = 0; // by lane
let fresh: u32 = 0; // those that have not been looked at
let touched: u32 = 0;

/** Forgets what was begun. */
export function clearMerges(): void {
  started = 0;
  active = 0;
  fresh = 0;
}

/**
 * Will merge the 2 to 30 bytes at s, put their ids where o is, and both in the cache at `set`; returns the new o, or 0 if the word may be
 * cut: `cuts` then has its borders. The keys are those of `words`; for more than 16 bytes s and the hash of `longWords`.
 */
export function mergeLater(s: usize, len: i32, k0: u64, k1: u64, set: usize, o: usize): usize {
  if (active == ALL) advance(LANES >> 1);
  const free = ctz(~active);
  const lane = lanes + <usize>free * LANE;
  const record = records + <usize>started * RECORD;
  store<u32>(record, <u32>o);
  store<u32>(lane, <u32>record, DONE);
  store<u64>(lane, k0, KEY);
  store<u64>(lane, k1, KEY + 8);
  store<u32>(lane, <u32>set, SET);
  store<u32>(lane, len, LENGTH);
  store<u32>(lane, (<u32>2 << len) - 1, ALIVE);
  const none = i8x16.splat(-1);
  v128.store(lane, none, RANKS);
  v128.store(lane, none, RANKS + 16);
  v128.store(lane, none, RANKS + 32);
  v128.store(lane, none, RANKS + 48);
  v128.store(lane, none, RANKS + 64);
  v128.store(lane, none, RANKS + 80);
  v128.store(lane, none, RANKS + 96);
  v128.store(lane, none, RANKS + 112);
  const n = <usize>len;
  let before: usize = load<u8>(s);
  let open: u32 = 0;
  store<u32>(lane, load<u32>(byteIds + (before << 2)), SYMBOLS);
  for (let i: usize = 1; i < n; i++) {
    const y: usize = load<u8>(s + i);
    const at = lane + (i << 2);
    store<u32>(at, load<u32>(byteIds + (y << 2)), SYMBOLS);
    const pair = bytePairs + (((before << 8) | y) << 3);
    const rank = load<u32>(pair);
    open |= (<u32>(rank == 0) & <u32>((before | y) < 128)) << <u32>i;
    store<u32>(at - 4, ((rank - 1) << 6) | <u32>(i - 1), RANKS);
    store<u32>(at - 4, load<u32>(pair, 4), MADE);
    before = y;
  }
  if (open) {
    cuts = borders(s, len, open);
    if (cuts) return 0;
  }
  store<u32>(lane, NOBODY, SYMBOLS - 4);
  store<u32>(lane + (n << 2), NOBODY, SYMBOLS);
  active |= <u32>1 << free;
  fresh |= <u32>1 << free;
  started++;
  begun++;
  return started == RECORDS ? mergeAll(o + 4) : o + 4;
}

/** Merges until at most `most` words are under way. Each loop does one thing for all words: so many waits for memory fall together. */
function advance(most: u32): void {
  for (; fresh; fresh &= fresh - 1) touched ^= load<u32>(<usize>load<u32>(lanes + <usize>ctz(fresh) * LANE, SET));
  while (popcnt(active) > most) {
    let done: u32 = 0;
    let end = probes;
    for (let m = active; m; m &= m - 1) {
      const to = mergeOne(lanes + <usize>ctz(m) * LANE, end);
      if (!to) done |= m & (0 - m);
      else end = to;
    }
    for (let at = probes; at < end; at += PROBE) {
      const bucket = likelyBucket(load<u32>(at, 8), load<u32>(at, 12), load<u64>(at));
      store<u32>(at, <u32>bucket, 16);
      touched ^= load<u32>(bucket);
    }
    for (let at = probes; at < end; at += PROBE) rank(at);
    active ^= done;
    for (; done; done &= done - 1) finish(lanes + <usize>ctz(done) * LANE);
  }
}

/** Merges what was begun and puts the ids in their places, the last of which is before o; returns the new o. */
export function mergeAll(o: usize): usize {
  advance(0);
  let more: usize = 0;
  for (let i: u32 = 0; i < started; i++) more += <usize>load<u32>(records + <usize>i * RECORD, COUNT) - 1;
  const end = o + (more << 2);
  let to = end;
  while (started) {
    const record = records + <usize>--started * RECORD;
    const place = <usize>load<u32>(record);
    const between = o - place - 4;
    to -= between;
    memory.copy(to, place + 4, between);
    const n = <usize>load<u32>(record, COUNT);
    to -= n << 2;
    for (let k: usize = 0; k < n; k++) store<u32>(to + (k << 2), load<u32>(record + (k << 2), RESULT));
    o = place;
  }
  return end;
}

/** The merge of lowest rank; the pairs that it makes are added to `probes` at `to`. Returns their new end, 0 if there is no merge. */
@inline
function mergeOne(lane: usize, to: usize): usize {
  const R = lane + RANKS;
  let v = v128.min<u32>(v128.min<u32>(v128.load(R), v128.load(R, 16)), v128.min<u32>(v128.load(R, 32), v128.load(R, 48)));
  v = v128.min<u32>(v, v128.min<u32>(v128.min<u32>(v128.load(R, 64), v128.load(R, 80)), v128.min<u32>(v128.load(R, 96), v128.load(R, 112))));
  v = v128.min<u32>(v, v128.shuffle<u32>(v, v, 2, 3, 0, 1));
  v = v128.min<u32>(v, v128.shuffle<u32>(v, v, 1, 0, 3, 2));
  const best = v128.extract_lane<u32>(v, 0);
  if (best >= NO_RANK) return 0;
  const i = best & 63;
  const at = lane + (<usize>i << 2);
  const id = load<u32>(at, MADE);
  let alive = load<u32>(lane, ALIVE);
  const j = i + 1 + ctz(alive >> (i + 1)); // the symbol taken in
  alive ^= <u32>1 << j;
  const k = i + 1 + ctz(alive >> (i + 1));
  const h = 31 - clz(alive & ((<u32>1 << i) - 1)); // -1 if there is none
  const left = lane + (<usize>h << 2);
  store<u32>(at, id, SYMBOLS);
  store<u32>(at, NONE, RANKS);
  store<u32>(left, NONE, RANKS);
  store<u32>(lane + (<usize>j << 2), NONE, RANKS);
  store<u32>(lane, alive, ALIVE);
  const before = load<u32>(left, SYMBOLS), after = load<u32>(lane + (<usize>k << 2), SYMBOLS);
  // a pair with nobody is written over by the next one
  probe(to, id, after, at, i);
  to += <usize>(after != NOBODY) << 5;
  probe(to, before, id, left, h);
  return to + (<usize>(before != NOBODY) << 5);
}

@inline
function probe(to: usize, x: u32, y: u32, at: usize, i: u32): void {
  store<u64>(to, pairHash(x, y));
  store<u32>(to, x, 8);
  store<u32>(to, y, 12);
  store<u32>(to, i, 20);
  store<u32>(to, <u32>at, 24);
}

@inline
function rank(probe: usize): void {
  const x = load<u32>(probe, 8), y = load<u32>(probe, 12);
  const entry = findAt(<usize>load<u32>(probe, 16), pairTag(x, y, load<u64>(probe)), x, y);
  const at = <usize>load<u32>(probe, 24);
  store<u32>(at, ((pairRank(entry) - 1) << 6) | load<u32>(probe, 20), RANKS);
  store<u32>(at, pairId(entry), MADE);
}

/** Keeps the ids of a word in its record and in the cache. */
function finish(lane: usize): void {
  const len = load<u32>(lane, LENGTH);
  const record = <usize>load<u32>(lane, DONE);
  const ids = record + RESULT;
  let m = load<u32>(lane, ALIVE) ^ (<u32>1 << len);
  const n = popcnt(m);
  store<u32>(record, n, COUNT);
  let to = ids;
  for (; m; m &= m - 1, to += 4) store<u32>(to, load<u32>(lane + (<usize>ctz(m) << 2), SYMBOLS));
  const set = <usize>load<u32>(lane, SET);
  const k0 = load<u64>(lane, KEY), k1 = load<u64>(lane, KEY + 8);
  if (len > 16) rememberLong(set, <u32>k1, <usize>k0, <i32>len, ids, <i32>n);
  else remember(set, k0, k1, <i32>len, ids, <i32>n);
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
