/** Finding added tokens: leftmost, then longest. */
import { three } from "./characters.as";
import { added, addedFirst, addedIds, addedMask, addedOne, NONE } from "./state.as";
import { eq } from "./window.as";

// flags of ids in addedIds
const SPECIAL: i32 = 1 << 30;
const LSTRIP: i32 = 1 << 29;
const RSTRIP: i32 = 1 << 28;
const CUT: i32 = 1 << 27;
const NORMALIZED: i32 = 1 << 26;
const RAW: i32 = 1 << 25;
const ID: i32 = (1 << 20) - 1;
let matchLength: usize = 0;
export let foundId: i32 = -1;
export let foundCut: bool = false;
export let foundEnd: usize = 0;

/** Flags and id of the longest added token at p that has none of the flags `without`, or -1. */
function matchAdded(p: usize, n: usize, without: i32): i32 {
  let node: u32 = 0;
  let best = -1;
  for (let q = p; q < n; q++) {
    const key = node * 256 + load<u8>(q);
    let h = ((key * 0x9e3779b1) >> 8) & addedMask;
    while (true) {
      const k = load<u32>(added + (<usize>h << 3));
      if (k == key) break;
      if (k == NONE) return best;
      h = (h + 1) & addedMask;
    }
    node = load<u32>(added + (<usize>h << 3), 4);
    const id = load<i32>(addedIds + (<usize>node << 2));
    if (id >= 0 && !(id & without)) {
      best = id;
      matchLength = q + 1 - p;
    }
  }
  return best;
}

/** First place at or after p where an added token may begin, or n. */
function nextAdded(p: usize, n: usize): usize {
  if (addedOne >= 0) {
    const c = i8x16.splat(<u8>addedOne);
    for (; p < n; p += 16) {
      const m = v128.bitmask<i8>(v128.eq<i8>(v128.load(p), c));
      if (m) return min(p + <usize>ctz(m), n);
    }
    return n;
  }
  while (p < n && !load<u8>(addedFirst + load<u8>(p))) p++;
  return p;
}

/** Bytes of the white-space character (Unicode's White_Space) at p; 0 if there is another one. */
function spaceWidth(p: usize): usize {
  const b: u32 = load<u8>(p);
  if (b == 32 || (b >= 9 && b <= 13)) return 1;
  if (b == 0xc2) {
    const c: u32 = load<u8>(p, 1);
    return c == 0x85 || c == 0xa0 ? 2 : 0;
  }
  if ((b & 0xf0) != 0xe0) return 0;
  const c = three(p);
  const wide = c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
  return wide ? 3 : 0;
}

/** Start of the white space that ends at p, not before `from`. */
function spacesBefore(p: usize, from: usize): usize {
  while (p > from) {
    let q = p - 1;
    while (q > from && (load<u8>(q) & 0xc0) == 0x80) q--;
    if (q + spaceWidth(q) != p) break;
    p = q;
  }
  return p;
}

/**
 * The first added token in [p, n), with the white space it takes: its address, or n; then addedId and addedEnd tell more.
 * split: 1 all of them, 2 all but special ones, which are plain text; with 4 only those that are looked for in raw text, with 8 only
 * those that are looked for in normalized text.
 */
export function findAdded(p: usize, n: usize, split: i32): usize {
  const from = p;
  const without = split & 4 ? NORMALIZED : split & 8 ? RAW : 0;
  while (true) {
    p = nextAdded(p, n);
    if (p >= n) return n;
    const id = matchAdded(p, n, without);
    if (id < 0) p++;
    else if (split & 2 && id & SPECIAL) p += matchLength;
    else return found(id, p, from, n);
  }
}

/** Keeps what was found at p; returns where it begins with the white space before it. */
function found(id: i32, p: usize, from: usize, n: usize): usize {
  foundId = id & ID;
  foundCut = (id & CUT) != 0;
  foundEnd = p + matchLength;
  if (id & RSTRIP) {
    let w: usize = 1;
    while (w && foundEnd < n) {
      w = spaceWidth(foundEnd);
      foundEnd += w;
    }
  }
  return id & LSTRIP ? spacesBefore(p, from) : p;
}

// The last answer of `lookAhead`, and what it was asked; keptTo 0: none.
let keptFrom: usize = 0;
let keptTo: usize = 0;
let keptAt: usize = 0;
let keptId: i32 = -1;
let keptCut: bool = false;
let keptEnd: usize = 0;

/** `findAdded` of all tokens in a text that will be encoded from the same place: its answer is kept until the text is another. */
export function lookAhead(p: usize, n: usize): usize {
  keptAt = findAdded(p, n, 1);
  keptFrom = p;
  keptTo = n;
  keptId = foundId;
  keptCut = foundCut;
  keptEnd = foundEnd;
  return keptAt;
}

/** The host has written another text. */
export function forgetAhead(): void {
  keptTo = 0;
}

/** `findAdded` of all tokens, without a second search where `lookAhead` has searched. */
export function findAhead(p: usize, n: usize): usize {
  if (p != keptFrom || n != keptTo) return findAdded(p, n, 1);
  foundId = keptId;
  foundCut = keptCut;
  foundEnd = keptEnd;
  return keptAt;
}

export function addedId(): i32 {
  return foundId;
}

export function addedEnd(): usize {
  return foundEnd;
}
