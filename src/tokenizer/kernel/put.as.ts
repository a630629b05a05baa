/** Ids of one piece, or of a part that no merge crosses: looked up, from the cache, or merged. */
import { findTokenBy, hash16, hash8, hashLong, same } from "./lookup.as";
import { putHuge, WINDOW } from "./long.as";
import { begun, cuts, LANE_BYTES, LONG_BYTES, LONG_ENTRY, LONG_KEY, LONG_RESULT, mergeLater, remember, rememberLong, wordMark } from "./lanes.as";
import { merge } from "./merge.as";
import { search } from "./search.as";
import {
  ceiling, family, GEMMA, longVocab, longVocabMask, longWords, longWordsMask, medium, mediumSlots, result, short, shortSlots, spend,
  wholeFilter, wholeOnly, wholeOnlyMask, wordMarks, words, wordsShift,
} from "./state.as";

/** About the nanoseconds that a word takes that is not known yet. */
@inline
function cost(len: i32): i32 {
  return len > 60 || family == GEMMA ? len * 75 : len * 20 + ((len * len * 7) >> 2);
}

/** Ids of the bytes [s, s + len) to o; returns the new o. `whole` is false for a part of a piece. 8 bytes from s on are readable. */
@inline
export function put(s: usize, len: i32, o: usize, whole: bool): usize {
  if (len <= 8) {
    const key = load<u64>(s) << (64 - (<u64>len << 3));
    const h = hash8(key);
    const at = short + (<usize>((<u64>h * shortSlots) >> 32) << 4);
    if (load<u64>(at) == key && load<u32>(at, 12) == len) {
      store<u32>(o, load<u32>(at, 8));
      return o + 4;
    }
    return putShort(s, len, o, whole, at, key, h);
  }
  return putMore(s, len, o, whole);
}

function putShort(s: usize, len: i32, o: usize, whole: bool, at: usize, key: u64, h: u32): usize {
  while (load<u32>(at, 12)) {
    if (load<u64>(at) == key && load<u32>(at, 12) == len) {
      store<u32>(o, load<u32>(at, 8));
      return o + 4;
    }
    at += 16;
  }
  return putWord(s, len, o, whole, key, 0, h);
}

function putMore(s: usize, len: i32, o: usize, whole: bool): usize {
  if (len > 16) return putLong(s, len, o, whole);
  const k0 = load<u64>(s), k1 = load<u64>(s + <usize>len - 8);
  const h = hash16(k0, k1);
  let at = medium + (<usize>((<u64>h * mediumSlots) >> 32) << 5);
  while (load<u32>(at, 28)) {
    if (load<u64>(at) == k0 && load<u64>(at, 8) == k1 && load<u32>(at, 28) == len) {
      store<u32>(o, load<u32>(at, 16));
      return o + 4;
    }
    at += 32;
  }
  return putWord(s, len, o, whole, k0, k1, h);
}

/** What is no token: from the cache, or merged. */
function putWord(s: usize, len: i32, o: usize, whole: bool, k0: u64, k1: u64, h: u32): usize {
  if (whole && wholeOnlyMask && (<u32>load<u8>(wholeFilter + (h >> 23)) >> ((h >> 20) & 7)) & 1) {
    const id = findTokenBy(hashLong(s, len), wholeOnly, wholeOnlyMask, s, len);
    if (id >= 0) {
      store<u32>(o, id);
      return o + 4;
    }
  }
  const w = words + (<usize>((h * 0x9e3779b1) >> wordsShift) << 6);
  const marks = wordMarks + ((w - words) >> 5);
  const mark = <u32>load<u16>(marks);
  const own = wordMark(h);
  if (((mark & 255) != own) & ((mark >> 8) != own)) return putNew(s, len, o, k0, k1, w);
  let m = load<u32>(w, 28);
  if (m >> 8 == <u32>len && load<u64>(w) == k0 && load<u64>(w, 8) == k1) {
    v128.store(o, v128.load(w, 16));
    return o + ((<usize>m & 255) << 2);
  }
  m = load<u32>(w, 60);
  if (m >> 8 == <u32>len && load<u64>(w, 32) == k0 && load<u64>(w, 40) == k1) {
    v128.store(o, v128.load(w, 48));
    return o + ((<usize>m & 255) << 2);
  }
  return putNew(s, len, o, k0, k1, w);
}

/** What is not in the cache either: `set` is its place there. */
function putNew(s: usize, len: i32, o: usize, k0: u64, k1: u64, w: usize): usize {
  // searching beats merging in words of other scripts (and in long ones), not in short ASCII words
  if (family != GEMMA && load<u8>(s + <usize>len - 1) < 128) return putLater(s, len, k0, k1, w, o);
  if (!spend(cost(len), o)) return o;
  const n = family == GEMMA ? merge(s, len) : search(s, len);
  if (!n) return putLater(s, len, k0, k1, w, o);
  for (let i = 0; i < n; i++) store<u32>(o + (<usize>i << 2), load<u32>(result + (<usize>i << 2)));
  remember(w, k0, k1, len, result, n);
  return o + (<usize>n << 2);
}

/** What will be merged, unless no merge crosses some of its borders: then its parts are put. */
function putLater(s: usize, len: i32, k0: u64, k1: u64, set: usize, o: usize): usize {
  const later = mergeLater(s, len, k0, k1, set, o);
  if (later) {
    spend(cost(len), later);
    return later;
  }
  const start = o, before = begun, e = s + <usize>len;
  let from = s;
  for (let m = cuts; m; m &= m - 1) {
    const cut = s + <usize>ctz(m);
    o = put(from, <i32>(cut - from), o, false);
    from = cut;
  }
  o = put(from, <i32>(e - from), o, false);
  if (begun == before && o < ceiling) {
    if (len > 16) rememberLong(set, <u32>k1, s, len, start, <i32>((o - start) >> 2));
    else remember(set, k0, k1, len, start, <i32>((o - start) >> 2));
  }
  return o;
}

function putLong(s: usize, len: i32, o: usize, whole: bool): usize {
  const h = hashLong(s, len);
  let id = findTokenBy(h, longVocab, longVocabMask, s, len);
  if (id < 0 && whole && wholeOnlyMask) id = findTokenBy(h, wholeOnly, wholeOnlyMask, s, len);
  if (id >= 0) {
    store<u32>(o, id);
    return o + 4;
  }
  if (<usize>len > WINDOW) return putHuge(s, s + <usize>len, o);
  const at = longWords + <usize>(h & longWordsMask) * LONG_ENTRY;
  if (len <= LONG_KEY && load<u32>(at) == h && <i32>load<u32>(at, 4) == len && same(at + LONG_BYTES, s, len)) {
    const n: usize = load<u32>(at, 8);
    memory.copy(o, at + LONG_RESULT, n << 2);
    return o + (n << 2);
  }
  if (family != GEMMA && len <= LANE_BYTES && load<u8>(s + <usize>len - 1) < 128) return putLater(s, len, s, h, at, o);
  if (!spend(cost(len), o)) return o;
  let n = 0;
  if (family != GEMMA && len <= 60) n = search(s, len);
  if (!n) n = merge(s, len);
  memory.copy(o, result, <usize>n << 2);
  rememberLong(at, h, s, len, result, n);
  return o + (<usize>n << 2);
}
