/**
 * Where the blocks that engines name by their own hashes lie. Control's alone. 12 bytes a block of a cache, in one of two buckets that the
 * hash chooses; where both are full, what would come is left out.
 */
import {
  BUCKET, buckets, CACHES, countOf, EXTRA, GROUP, keyAt, MAX_CACHES, PLACES, recordOf, ROWS, rows, segments, setsAt, SHAPE, WHOSE,
} from "./layout.as";

/** Copies that a row counts; so many more can be counted in its bucket, of two rows. */
const COPY_BITS: u32 = 4;
const COPIES: u32 = 15;
const MOST_EXTRA: u32 = (1 << 28) - 1;
/** Of a block's key what rows keep. */
const KEY_BITS: u32 = 21;
const KEY_MASK: u32 = (1 << 21) - 1;

const FREE: u32 = 0;
const OPEN: u32 = 1;
const CLOSED: u32 = 2; // its rows are to be swept away

// One thread has them.
let lastCache: u32 = 0;
let closed: u32 = 0;
let hand: u32 = 0;
// Of the last hash that was mixed: its tag, and its buckets.
let tag: u32 = 0;
let one: usize = 0;
let other: usize = 0;
let freeRows: u32 = 0;

/** A number for a cache whose blocks are to be known; another one whenever it forgets them all. -1: there are too many. */
export function openCache(): i32 {
  for (let round = 0; round < 2; round++) {
    for (let i: u32 = 1; i < MAX_CACHES; i++) {
      const cache = 1 + ((lastCache + i) % (MAX_CACHES - 1));
      if (<u32>load<u8>(CACHES + <usize>cache) != FREE) continue;
      store<u8>(CACHES + <usize>cache, <u8>OPEN);
      lastCache = cache;
      return <i32>cache;
    }
    sweepRows(0xffffffff); // rare: numbers of caches that were cleared come back
  }
  return -1;
}

/** Its blocks are not found any more. */
export function closeCache(cache: u32): void {
  if (<u32>load<u8>(CACHES + <usize>cache) != OPEN) return;
  store<u8>(CACHES + <usize>cache, <u8>CLOSED);
  closed++;
  hand = 0;
}

/** Frees rows of caches that were closed, and looks at so many for that. False: nothing is left to do. */
export function sweepRows(count: u32): bool {
  if (!closed) return false;
  const all = <u32>buckets;
  const end = <u32>min<u64>(all, <u64>hand + (<u64>count + ROWS - 1) / ROWS);
  for (; hand < end; hand++) {
    const bucket = rows + <usize>hand * BUCKET;
    for (let i: u32 = 0; i < ROWS; i++) {
      const row = bucket + (<usize>i << 2);
      if (load<u32>(row + PLACES) && isClosed(row)) dropRow(row);
    }
  }
  if (hand < all) return true;
  for (let cache: u32 = 0; cache < MAX_CACHES; cache++)
    if (<u32>load<u8>(CACHES + <usize>cache) == CLOSED) store<u8>(CACHES + <usize>cache, <u8>FREE);
  closed = 0;
  hand = 0;
  return false;
}

@inline
function isClosed(row: usize): bool {
  return <u32>load<u8>(CACHES + <usize>(load<u32>(row + WHOSE) >> KEY_BITS)) == CLOSED;
}

/** Reads where a hash belongs, so that it is on its way from memory. */
@inline
export function fetchRow(cache: u32, low: u32, high: u32): u32 {
  mixHash(low, high, cache);
  return load<u32>(one) ^ load<u32>(one + 64) ^ load<u32>(other) ^ load<u32>(other + 64);
}

/** The row of a cache's hash, 0 if there is none. */
export function findRow(cache: u32, low: u32, high: u32): usize {
  mixHash(low, high, cache);
  const row = findIn(one, cache);
  return row ? row : findIn(other, cache);
}

@inline
function findIn(bucket: usize, cache: u32): usize {
  const wanted = i32x4.splat(<i32>tag);
  let m =
    <u32>i32x4.bitmask(i32x4.eq(v128.load(bucket), wanted)) |
    (<u32>i32x4.bitmask(i32x4.eq(v128.load(bucket, 16), wanted)) << 4) |
    (<u32>(load<u32>(bucket, 32) == tag) << 8) |
    (<u32>(load<u32>(bucket, 36) == tag) << 9);
  for (; m; m &= m - 1) {
    const row = bucket + (<usize>ctz(m) << 2);
    if (load<u32>(row + PLACES) && load<u32>(row + WHOSE) >> KEY_BITS == cache) return row;
  }
  return 0;
}

@inline
export function positionOf(row: usize): u32 {
  return (load<u32>(row + PLACES) >> COPY_BITS) - 1;
}

/** The block that a row means is still where it was. */
export function isThere(row: usize): bool {
  const position = positionOf(row);
  const record = recordOf(position / GROUP);
  const i = position % GROUP;
  return (
    i < countOf(load<u32>(record + SHAPE)) &&
    load<u32>(setsAt(record, i)) != 0 &&
    (<u32>keyAt(record, i) & KEY_MASK) == (load<u32>(row + WHOSE) & KEY_MASK)
  );
}

/** False: there is no room for it. */
export function putRow(cache: u32, low: u32, high: u32, position: u32, key: u64): bool {
  let row = findRow(cache, low, high);
  const whose = (cache << KEY_BITS) | (<u32>key & KEY_MASK);
  if (row && positionOf(row) == position && load<u32>(row + WHOSE) == whose) {
    const place = load<u32>(row + PLACES);
    if ((place & COPIES) < COPIES) store<u32>(row + PLACES, place + 1);
    else countExtra(row);
    return true;
  }
  if (!row) row = freeRow();
  if (!row) return false;
  dropRow(row);
  store<u32>(row, tag);
  store<u32>(row + WHOSE, whose);
  store<u32>(row + PLACES, ((position + 1) << COPY_BITS) | 1);
  return true;
}

/** One copy is gone: true if that was the last. */
export function takeRow(row: usize): bool {
  const extra = extraOf(row);
  if (extra) {
    const left = load<u32>(extra) - 1;
    store<u32>(extra, left & MOST_EXTRA ? left : 0);
    return false;
  }
  const place = load<u32>(row + PLACES);
  if ((place & COPIES) > 1) {
    store<u32>(row + PLACES, place - 1);
    return false;
  }
  dropRow(row);
  return true;
}

/** It means nothing any more, whatever copies there are. */
export function dropRow(row: usize): void {
  if ((load<u32>(row + PLACES) & COPIES) == COPIES) {
    const extra = extraOf(row);
    if (extra) store<u32>(extra, 0);
  }
  store<u32>(row + PLACES, 0);
}

/** Where copies of a row are counted beyond its own, 0 if nowhere. */
function extraOf(row: usize): usize {
  const bucket = row & ~(BUCKET - 1);
  const name = <u32>((row - bucket) >> 2) + 1;
  if (load<u32>(bucket + EXTRA) >> 28 == name) return bucket + EXTRA;
  return load<u32>(bucket + EXTRA + 4) >> 28 == name ? bucket + EXTRA + 4 : 0;
}

function countExtra(row: usize): void {
  const bucket = row & ~(BUCKET - 1);
  let at = extraOf(row);
  if (!at) {
    at = bucket + EXTRA;
    if (load<u32>(at)) at += 4;
    if (load<u32>(at)) return; // it will be forgotten early
    store<u32>(at, (<u32>((row - bucket) >> 2) + 1) << 28);
  }
  if ((load<u32>(at) & MOST_EXTRA) < MOST_EXTRA) store<u32>(at, load<u32>(at) + 1);
}

/** A row for what was looked for last: in the emptier bucket, else that of one which means nothing any more. */
function freeRow(): usize {
  const first = freeIn(one);
  const firstFree = freeRows;
  const second = freeIn(other);
  if (firstFree + freeRows > 0) return firstFree >= freeRows ? first : second;
  for (let choice = 0; choice < 2; choice++) {
    const bucket = choice ? other : one;
    for (let i: u32 = 0; i < ROWS; i++) if (!isThere(bucket + (<usize>i << 2))) return bucket + (<usize>i << 2);
  }
  return 0;
}

function freeIn(bucket: usize): usize {
  let at: usize = 0;
  freeRows = 0;
  for (let i: u32 = 0; i < ROWS; i++) {
    const row = bucket + (<usize>i << 2);
    if (load<u32>(row + PLACES) && !isClosed(row)) continue;
    if (!at) at = row;
    freeRows++;
  }
  return at;
}

@inline
function mixHash(low: u32, high: u32, cache: u32): void {
  let x = ((<u64>high << 32) | <u64>low) ^ (<u64>cache * 0x9e3779b97f4a7c15);
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
  x = (x ^ (x >> 32)) * 0xc2b2ae3d27d4eb4f;
  x ^= x >> 29;
  const y = x * 0x9fb21c651e98df25;
  tag = <u32>y;
  one = rows + <usize>(((x >> 32) * buckets) >> 32) * BUCKET;
  other = rows + <usize>(((y >> 32) * buckets) >> 32) * BUCKET;
}
