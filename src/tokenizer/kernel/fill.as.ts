/** Filling a new image: all tables zero, long ones -1. The kernel fills its own tables, so that both sides hash alike. */
import { insertBorder } from "./borders.as";
import { findPair, hash16, hash8, hashLong, insertEntry, pairId, pairRank, setTokenBit } from "./lookup.as";
import { merge, setStopAt } from "./merge.as";
import {
  borderFilter, longVocab, longVocabMask, medium, mediumSlots, result, short, shortSlots, splits, tokenBytes, tokenOffsets, wholeFilter, wholeOnly, wholeOnlyMask,
} from "./state.as";

export function insertToken(id: u32): void {
  const s = tokenBytes + load<u32>(tokenOffsets + (<usize>id << 2));
  const len = <i32>(load<u32>(tokenOffsets + (<usize>id << 2), 4) - load<u32>(tokenOffsets + (<usize>id << 2)));
  if (len > 16) return insertLong(longVocab, longVocabMask, s, len, id);
  if (len <= 8) {
    const key = load<u64>(s) << (64 - (<u64>len << 3));
    setTokenBit(hash8(key), len);
    let at = short + (<usize>((<u64>hash8(key) * shortSlots) >> 32) << 4);
    while (load<u32>(at, 12)) at += 16;
    store<u64>(at, key);
    store<u32>(at, id, 8);
    store<u32>(at, len, 12);
    return;
  }
  const k0 = load<u64>(s), k1 = load<u64>(s + <usize>len - 8);
  setTokenBit(hash16(k0, k1), len);
  let at = medium + (<usize>((<u64>hash16(k0, k1) * mediumSlots) >> 32) << 5);
  while (load<u32>(at, 28)) at += 32;
  store<u64>(at, k0);
  store<u64>(at, k1, 8);
  store<u32>(at, id, 16);
  store<u32>(at, len, 28);
}

/** A token that its own bytes do not merge to. */
export function insertWholeOnly(id: u32): void {
  const s = tokenBytes + load<u32>(tokenOffsets + (<usize>id << 2));
  const len = <i32>(load<u32>(tokenOffsets + (<usize>id << 2), 4) - load<u32>(tokenOffsets + (<usize>id << 2)));
  insertLong(wholeOnly, wholeOnlyMask, s, len, id);
  if (len > 16) return;
  const h = len <= 8 ? hash8(load<u64>(s) << (64 - (<u64>len << 3))) : hash16(load<u64>(s), load<u64>(s + <usize>len - 8));
  const at = wholeFilter + (h >> 23);
  store<u8>(at, load<u8>(at) | (<u8>1 << <u8>((h >> 20) & 7)));
}

function insertLong(table: usize, mask: u32, s: usize, len: i32, id: u32): void {
  const h = hashLong(s, len);
  let i = h & mask;
  while (load<i32>(table + (<usize>i << 3), 4) >= 0) i = (i + 1) & mask;
  store<u32>(table + (<usize>i << 3), h);
  store<u32>(table + (<usize>i << 3), id, 4);
}

/** False if the pair was there before (its first rank stays), or there is no room. */
export function insertPair(x: u32, y: u32, rank: u32, id: u32): bool {
  if (borderFilter) insertBorder(x, y);
  return !findPair(x, y) && insertEntry(x, y, rank, id);
}

/** Finds the last merge of a token of 2 to 60 bytes that encodes to itself: both parts must be registered already. */
export function insertSplit(id: u32): void {
  const from = load<u32>(tokenOffsets + (<usize>id << 2));
  const len = <i32>(load<u32>(tokenOffsets + (<usize>id << 2), 4) - from);
  const at = splits + (<usize>id << 3);
  store<u64>(at, len == 1 ? 0 : -1);
  if (len == 1 || len > 60) return;
  setStopAt(2);
  const n = merge(tokenBytes + from, len);
  setStopAt(1);
  if (n != 2) return;
  const x = load<u32>(result), y = load<u32>(result, 4);
  const pair = findPair(x, y);
  if (!pair || pairId(pair) != id) return;
  const a = load<u64>(splits + (<usize>x << 3)), b = load<u64>(splits + (<usize>y << 3));
  const rank = <u64>pairRank(pair);
  // merges must come in the order of their ranks, else the undoing in `fits` goes wrong
  if (a != -1 && b != -1 && a >> 40 < rank && b >> 40 < rank) store<u64>(at, (rank << 40) | (<u64>x << 20) | <u64>y);
}

/** Does the token's own text merge to it alone? */
export function encodesItself(id: u32): bool {
  const from = load<u32>(tokenOffsets + (<usize>id << 2));
  const n = merge(tokenBytes + from, <i32>(load<u32>(tokenOffsets + (<usize>id << 2), 4) - from));
  return n == 1 && load<u32>(result) == id;
}
