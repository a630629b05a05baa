/** Byte-pair merging. */
import { mergeGemma } from "./gemma.as";
import { findPair, pairId, pairRank } from "./lookup.as";
import { byteIds, bytePairs, family, GEMMA, NOBODY, NONE, reserve, scratch, setResult } from "./state.as";

let stopAt: i32 = 1; // symbols at which merging stops

// Of a word of up to 60 symbols, by index: its id, rank << 6 | index of the merge with the next one (so one minimum finds both), the
// id that this makes. The places before the first symbol may be written.
const IDS: usize = 16;
const RANKS: usize = 320;
const MADE: usize = 640;
/** Ranks from here on are no merges. */
const NO_RANK: u32 = 0xffffffc0;

/** Where the symbols of a word of up to 60 lie that `mergeLoop` merges. */
@inline
export function symbols(): usize {
  return scratch + IDS;
}

/** BPE of [s, s + len) into `result`; returns the number of ids. */
export function merge(s: usize, len: i32): i32 {
  if (family == GEMMA) return mergeGemma(s, len);
  if (len > 60) {
    reserve(<usize>len * 36 + 64);
    for (let i: usize = 0; i < <usize>len; i++) store<u32>(scratch + (i << 2), load<u32>(byteIds + (<usize>load<u8>(s + i) << 2)));
    return mergeHeap(len);
  }
  const P = scratch + IDS, R = scratch + RANKS, M = scratch + MADE;
  const n = <usize>len;
  let before: usize = load<u8>(s);
  store<u32>(P, load<u32>(byteIds + (before << 2)));
  for (let i: usize = 1; i < n; i++) {
    const y: usize = load<u8>(s + i);
    store<u32>(P + (i << 2), load<u32>(byteIds + (y << 2)));
    const pair = bytePairs + (((before << 8) | y) << 3);
    store<u32>(R + ((i - 1) << 2), ((load<u32>(pair) - 1) << 6) | <u32>(i - 1));
    store<u32>(M + ((i - 1) << 2), load<u32>(pair, 4));
    before = y;
  }
  store<u32>(R + ((n - 1) << 2), NONE);
  return mergeLoop(len);
}

/** As `merge`, for symbols that are there already, 2 to 60. */
export function mergeSymbols(len: i32): i32 {
  const P = scratch + IDS;
  for (let i: usize = 0; i + 1 < <usize>len; i++) rank(i, findPair(load<u32>(P + (i << 2)), load<u32>(P + (i << 2), 4)));
  store<u32>(scratch + RANKS + ((<usize>len - 1) << 2), NONE);
  return mergeLoop(len);
}

@inline
function rank(i: usize, pair: u64): void {
  store<u32>(scratch + RANKS + (i << 2), ((pairRank(pair) - 1) << 6) | <u32>i);
  store<u32>(scratch + MADE + (i << 2), pairId(pair));
}

/** Merges `len` symbols whose ranks are in place. */
function mergeLoop(len: i32): i32 {
  const P = scratch + IDS, R = scratch + RANKS, M = scratch + MADE;
  const n = <usize>len;
  const last = R + ((n - 1) << 2);
  let alive: u64 = (<u64>2 << <u64>len) - 1; // by index: a symbol begins here; also behind the last one
  let left = len;
  store<u32>(P - 4, NOBODY);
  store<u32>(P + (n << 2), NOBODY);
  while (left > stopAt) {
    let best = load<u32>(R);
    for (let r = R + 4; r < last; r += 4) {
      const x = load<u32>(r);
      best = select<u32>(x, best, x < best);
    }
    if (best >= NO_RANK) break;
    const i = <usize>(best & 63);
    const id = load<u32>(M + (i << 2));
    const j = i + 1 + <usize>ctz(alive >> (<u64>i + 1)); // the symbol taken in
    alive ^= <u64>1 << <u64>j;
    const k = i + 1 + <usize>ctz(alive >> (<u64>i + 1));
    const h = 63 - <usize>clz(alive & ((<u64>1 << <u64>i) - 1)); // -1 if there is none
    store<u32>(P + (i << 2), id);
    store<u32>(R + (j << 2), NONE);
    const before = load<u32>(P + (h << 2)), after = load<u32>(P + (k << 2));
    // a pair with nobody is always looked for at the same place: no memory is waited for
    rank(i, findPair(select<u32>(NOBODY, id, after == NOBODY), after));
    rank(h, findPair(before, select<u32>(NOBODY, id, before == NOBODY)));
    left--;
  }
  setResult(P);
  let to = P;
  for (let m = alive ^ (<u64>1 << <u64>len); m; m &= m - 1, to += 4) store<u32>(to, load<u32>(P + (<usize>ctz(m) << 2)));
  return left;
}

/** The same with a heap of rank << 32 | position over a linked list: O(n log n). Symbols at scratch, n of them. */
export function mergeHeap(n: i32): i32 {
  const size = <usize>n << 2;
  const ID = scratch, NX = scratch + size, PV = NX + size, H = (PV + size + 7) & ~7;
  let heap: i32 = 0;
  for (let i = 0; i < n; i++) {
    const at = <usize>i << 2;
    store<i32>(NX + at, i + 1 < n ? i + 1 : -1);
    store<i32>(PV + at, i - 1);
    if (i + 1 < n) {
      const f = findPair(load<u32>(ID + at), load<u32>(ID + at, 4));
      if (f) heap = push(H, heap, (<u64>pairRank(f) << 32) | <u64>i);
    }
  }
  while (heap > 0) {
    const top = load<u64>(H);
    heap = pop(H, heap);
    const r = <u32>(top >> 32);
    const p = <usize>(<u32>top) << 2;
    const a = load<u32>(ID + p);
    if (a == NONE) continue;
    const qi = load<i32>(NX + p);
    if (qi < 0) continue;
    const q = <usize>qi << 2;
    const f = findPair(a, load<u32>(ID + q));
    if (!f || pairRank(f) != r) continue;
    const id = pairId(f);
    store<u32>(ID + p, id);
    store<u32>(ID + q, NONE);
    const q2 = load<i32>(NX + q);
    store<i32>(NX + p, q2);
    if (q2 >= 0) {
      store<i32>(PV + (<usize>q2 << 2), <i32>(p >> 2));
      const g = findPair(id, load<u32>(ID + (<usize>q2 << 2)));
      if (g) heap = push(H, heap, (<u64>pairRank(g) << 32) | <u64>(p >> 2));
    }
    const l = load<i32>(PV + p);
    if (l >= 0) {
      const g = findPair(load<u32>(ID + (<usize>l << 2)), id);
      if (g) heap = push(H, heap, (<u64>pairRank(g) << 32) | <u64>l);
    }
  }
  let k: usize = 0;
  for (let i = 0; i >= 0; i = load<i32>(NX + (<usize>i << 2))) {
    store<u32>(ID + (k << 2), load<u32>(ID + (<usize>i << 2))); // k <= i
    k++;
  }
  setResult(ID);
  return <i32>k;
}

function push(H: usize, n: i32, v: u64): i32 {
  let i = n;
  while (i > 0) {
    const up = (i - 1) >> 1;
    const x = load<u64>(H + (<usize>up << 3));
    if (x <= v) break;
    store<u64>(H + (<usize>i << 3), x);
    i = up;
  }
  store<u64>(H + (<usize>i << 3), v);
  return n + 1;
}

function pop(H: usize, n: i32): i32 {
  n--;
  const v = load<u64>(H + (<usize>n << 3));
  let i = 0;
  while (true) {
    let c = 2 * i + 1;
    if (c >= n) break;
    if (c + 1 < n && load<u64>(H + (<usize>c << 3), 8) < load<u64>(H + (<usize>c << 3))) c++;
    const x = load<u64>(H + (<usize>c << 3));
    if (x >= v) break;
    store<u64>(H + (<usize>i << 3), x);
    i = c;
  }
  store<u64>(H + (<usize>i << 3), v);
  return n;
}

/** Lets merging stop at `symbols` symbols; 1 is the rule. */
export function setStopAt(symbols: i32): void {
  stopAt = symbols;
}
