/**
 * The encoder's inner loop in AssemblyScript: UTF-8 bytes in, token ids out, all tables in linear memory.
 * A table image (see ../image/header.ts) lies at `header`; nothing here allocates except scratch for long pieces.
 */
import { findAdded, findAhead, foundCut, foundEnd, foundId } from "./added.as";
import { three } from "./characters.as";
import { sectionGemma, spaces } from "./gemma.as";
import { putWide } from "./joins.as";
import { piece } from "./pieces.as";
import { clearMerges, mergeAll } from "./lanes.as";
import { put } from "./put.as";
import { classIndex, classPages, family, GEMMA, GPT2, prefix, PREFIX_EACH, PREFIX_EACH_BARE, PREFIX_FIRST_BARE, ceiling, setBudget } from "./state.as";
import { starts } from "./window.as";
export { digest } from "./digest.as";
export { encodesItself, insertPair, insertSplit, insertToken, insertWholeOnly } from "./fill.as";
export { insertAnyJoin } from "./gemma.as";
export { insertJoin } from "./joins.as";
export { addedEnd, addedId, findAdded, forgetAhead, lookAhead } from "./added.as";
export { init } from "./state.as";

/** A section without added tokens; the byte at n is the sentinel 255 and 64 readable bytes follow it. */
function section(p: usize, n: usize, o: usize): usize {
  while (p < n && o < ceiling) {
    if (family != GPT2 && !(load<u32>(p) & 0x80808080)) {
      let m = starts(p);
      m &= m - 1;
      if (m) {
        let s = p;
        do {
          const e = p + <usize>ctz(m);
          m &= m - 1;
          o = put(s, <i32>(e - s), o, true);
          s = e;
        } while (m);
        p = s;
        continue;
      }
    }
    const e = piece(p, n);
    o = e - p > 3 ? putWide(p, e, o) : put(p, <i32>(e - p), o, true);
    p = e;
  }
  return o < ceiling ? mergeAll(o) : o;
}

let cutCount: i32 = 0;
let outAt: usize = 0; // where the ids of the last text that had a budget end

/** About the nanoseconds that the last `encode` left of its budget. */
export function budgetLeft(): i32 {
  return <i32>min<usize>(ceiling > outAt ? (ceiling - outAt) << 3 : 0, <usize>i32.MAX_VALUE);
}

/** Pairs that the last `encode` wrote to `cuts`. */
export function cutsFound(): i32 {
  return cutCount;
}

/**
 * Encodes the bytes [p, n) to o; returns the number of ids. 80 bytes after n are readable; the first of them and the one before p are writable.
 * split: 0 added tokens are plain text, else as in `findAdded`.
 * budget: about the nanoseconds to spend, 0 for no limit; -1 is returned if that is not enough.
 * cuts: up to `room` pairs of words are written there, for each added token that a text may be cut behind: its end, counted from p, and the number of ids up to it.
 */
export function encode(p: usize, n: usize, out: usize, split: i32, budget: i32, cuts: usize, room: i32): i32 {
  let o = out;
  let s = p;
  const from = p;
  setBudget(out, budget);
  clearMerges();
  cutCount = 0;
  if (split) {
    while (true) {
      p = split == 1 ? findAhead(p, n) : findAdded(p, n, split);
      if (p >= n) break;
      if (p > s) {
        o = encodeSection(s, p, o, s == from);
        if (o >= ceiling) return -1;
      }
      store<u32>(o, foundId);
      o += 4;
      if (o >= ceiling) return -1;
      p = s = foundEnd;
      if (foundCut && cutCount < room) {
        const at = cuts + (<usize>cutCount << 3);
        cutCount++;
        store<u32>(at, <u32>(p - from));
        store<u32>(at, <u32>((o - out) >> 2), 4);
      }
    }
  }
  if (s < n) o = encodeSection(s, n, o, s == from);
  outAt = o;
  if (o >= ceiling) return -1;
  return <i32>((o - out) >> 2);
}

@inline
function encodeSection(s: usize, e: usize, o: usize, first: bool): usize {
  const save: u32 = load<u8>(e);
  store<u8>(e, 255);
  o = family == GEMMA ? encodeCharacters(s, e, o, first) : section(s, e, o);
  store<u8>(e, save);
  return o;
}

/** A section of characters; the byte before it is lent for a space. */
function encodeCharacters(s: usize, e: usize, o: usize, first: bool): usize {
  const end = spaces(s, e);
  const wanted = prefix == PREFIX_EACH || ((prefix == PREFIX_EACH_BARE || (prefix == PREFIX_FIRST_BARE && first)) && load<u8>(s) != 32);
  if (!wanted) return sectionGemma(s, end, o);
  const save: u32 = load<u8>(s - 1);
  store<u8>(s - 1, 32);
  o = sectionGemma(s - 1, end, o);
  store<u8>(s - 1, save);
  return o;
}

/** True if NFC cannot change the text: no mark, no conjoining letter, nothing that decomposes. */
export function normal(p: usize, n: usize): bool {
  while (p < n) {
    if (!v128.any_true(v128.and(v128.load(p), i8x16.splat(-128)))) {
      p += 16;
      continue;
    }
    const b: u32 = load<u8>(p);
    if (b < 0xcc) {
      p += b < 0xc0 ? 1 : 2;
      continue;
    }
    let c: u32;
    let w: usize = 2;
    if (b < 0xe0) c = ((b & 31) << 6) | (load<u8>(p, 1) & 63);
    else if (b < 0xf0) {
      c = three(p);
      w = 3;
    } else {
      c = ((b & 7) << 18) | ((<u32>load<u8>(p, 1) & 63) << 12) | ((<u32>load<u8>(p, 2) & 63) << 6) | (load<u8>(p, 3) & 63);
      w = 4;
    }
    if (load<u8>(classPages + (<usize>load<u16>(classIndex + ((<usize>c >> 8) << 1)) << 8) + (c & 255)) & 128) return false;
    p += w;
  }
  return true;
}
