/**
 * The encoder's inner loop in AssemblyScript: UTF-8 bytes in, token ids out, all tables in linear memory.
 * A table image (see ../image/header.ts) lies at `header`; nothing here allocates except scratch for long pieces.
 * Sizes are bytes unless said otherwise. `p`, `s`, `e`, `n` are addresses: start, end, end of section.
 */

// character classes, as in ../image/classes.ts
const UP: u32 = 1;
const LO: u32 = 2;
const NU: u32 = 4;
const WS: u32 = 8;
const NL: u32 = 16;
const LT: u32 = 32;
const OT: u32 = 64;
const D_LM: u32 = 1;
const D_PFX: u32 = 2;
const D_PS: u32 = 4;
const D_WS: u32 = 8;
const D_NL: u32 = 16;
const D_N: u32 = 32;
const D_CJK: u32 = 64;
const D_AL: u32 = 128;

const CL100K: i32 = 0;
const O200K: i32 = 1;
const DEEPSEEK: i32 = 2;
const GEMMA: i32 = 3;

const K0: u64 = 0x9e3779b97f4a7c15;
const K1: u64 = 0xc2b2ae3d27d4eb4f;
const LONG_ENTRY: usize = 256; // hash, length, count, 116 key bytes, 32 ids
const LONG_KEY: i32 = 116;
const LONG_IDS: i32 = 32;
const NONE: u32 = 0xffffffff;
const SPECIAL: i32 = 1 << 30; // flag of ids in addedIds

let family: i32 = 0;
let maxDigits: i32 = 3;
let contractions: bool = true; // does 's belong to the word or stand alone? Without, an apostrophe is punctuation
let classBits: usize = 0; // class by ASCII byte
let classIndex: usize = 0; // u16 page by code point >> 8
let classPages: usize = 0;
let short: usize = 0; // tokens of up to 8 bytes, 16-byte entries: key 8, id, length
let shortSlots: u64 = 0;
let medium: usize = 0; // tokens of 9 to 16 bytes, 32-byte entries: key 16, id, -, -, length
let mediumSlots: u64 = 0;
let longVocab: usize = 0; // hash, id
let longVocabMask: u32 = 0;
let tokenOffsets: usize = 0;
let tokenBytes: usize = 0;
let wholeOnly: usize = 0; // hash, id: tokens that only ignore_merges can produce
let wholeOnlyMask: u32 = 0;
let wholeFilter: usize = 0; // 4096 bits by the hash of the first 16 bytes
let byteIds: usize = 0;
let bytePairs: usize = 0; // rank + 1 and id by two bytes
let pairs: usize = 0; // 16-byte entries: left << 20 | right, rank + 1, id
let pairSlots: u64 = 0;
let tokenFilter: usize = 0; // 2 Mbit: may these bytes be a token of up to 16 bytes?
let splits: usize = 0; // u64 per token, its last merge: rank + 1 24 (0: a single byte), left 20, right 20; -1 if search may not use it
let hotPairs: usize = 0; // the merges of lowest rank, in a small table of their own
let hotSlots: u64 = 0;
let hotRanks: u32 = 0;
let pairFilter: usize = 0; // 4 Mbit: most lookups are for pairs that do not merge
let joinFilter: usize = 0; // pairs of neighbouring characters that some merge joins
let joinShift: u32 = 0;
let joinBorders: usize = 0; // byte by (last 6 bits of a character, low 4 bits of the next one's first byte): some merge of partial characters joins there
let added: usize = 0; // trie: key, next
let addedMask: u32 = 0;
let addedIds: usize = 0;
let addedFirst: usize = 0;
let addedOne: i32 = -1; // the only first byte of added tokens, or -1

let words: usize = 0; // cache, 2-way sets of 32-byte entries: key 16, 3 ids, length << 8 | count
let wordsShift: u32 = 0;
let longWords: usize = 0; // cache, direct mapped
let longWordsMask: u32 = 0;
let scratch: usize = 0;
let scratchSize: usize = 0;
let result: usize = 0; // ids of the last merge
let matchLength: usize = 0;
let stopAt: i32 = 1; // symbols at which merging stops
let asciiJoins: usize = 0; // Gemma: byte by two ASCII characters
let foundId: i32 = -1;
let foundEnd: usize = 0;

/** Takes the image at `header`; `cache` is zeroed room for 2^wordBits words (32 bytes each) and 2^longBits long words (256 bytes each). */
export function init(header: usize, cache: usize, wordBits: i32, longBits: i32): void {
  family = load<i32>(header, 8);
  maxDigits = load<i32>(header, 12);
  contractions = load<u32>(header, 176) != 0;
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
  pairSlots = load<u32>(header, 76);
  pairFilter = header + load<u32>(header, 80);
  joinFilter = header + load<u32>(header, 88);
  joinShift = load<u32>(header, 92);
  joinBorders = header + load<u32>(header, 132);
  wholeFilter = header + load<u32>(header, 136);
  hotPairs = header + load<u32>(header, 144);
  hotSlots = load<u32>(header, 148);
  hotRanks = load<u32>(header, 152);
  tokenFilter = header + load<u32>(header, 156);
  splits = header + load<u32>(header, 160);
  asciiJoins = header + load<u32>(header, 168);
  added = header + load<u32>(header, 96);
  addedMask = load<u32>(header, 100);
  addedIds = header + load<u32>(header, 104);
  addedFirst = header + load<u32>(header, 108);
  addedOne = load<i32>(header, 112);
  words = cache;
  wordsShift = 32 - (wordBits - 1);
  longWords = cache + (<usize>32 << wordBits);
  longWordsMask = (1 << longBits) - 1;
  reserve(4096);
}

/** Scratch of at least `size` at the end of memory; what it held is lost. */
function reserve(size: usize): void {
  if (size <= scratchSize) return;
  let want: usize = 65536;
  while (want < size) want <<= 1;
  const page = memory.grow(<i32>(want >>> 16));
  if (page < 0) unreachable();
  scratch = <usize>page << 16;
  scratchSize = want;
}

// ---------------------------------------------------------------- filling a new image (all tables zero, long tables -1)

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
/** False if the pair was there before: its first rank stays. */
export function insertPair(x: u32, y: u32, rank: u32, id: u32): bool {
  if (findPair(x, y)) return false;
  const key = (<u64>x << 20) | <u64>y;
  const h = key * K0;
  const f = pairFilter + (<usize>(h >> 47) << 2);
  store<u32>(f, load<u32>(f) | (1 << (<u32>(h >> 42) & 31)));
  let at = rank < hotRanks ? hotPairs + (<usize>(((h >> 32) * hotSlots) >> 32) << 4) : pairs + (<usize>(((h >> 32) * pairSlots) >> 32) << 4);
  while (load<u32>(at, 8)) at += 16;
  store<u64>(at, key);
  store<u32>(at, rank + 1, 8);
  store<u32>(at, id, 12);
  return true;
}
export function insertJoin(a: u32, b: u32): void {
  const g = joinBit(a, b);
  const at = joinFilter + (<usize>(g >> 5) << 2);
  store<u32>(at, load<u32>(at) | (1 << (g & 31)));
}
/** Finds the last merge of a token of 2 to 60 bytes that encodes to itself: both parts must be registered already. */
export function insertSplit(id: u32): void {
  const from = load<u32>(tokenOffsets + (<usize>id << 2));
  const len = <i32>(load<u32>(tokenOffsets + (<usize>id << 2), 4) - from);
  const at = splits + (<usize>id << 3);
  store<u64>(at, len == 1 ? 0 : -1);
  if (len == 1 || len > 60) return;
  stopAt = 2;
  const n = merge(tokenBytes + from, len);
  stopAt = 1;
  if (n != 2) return;
  const x = load<u32>(result), y = load<u32>(result, 4);
  const pair = findPair(x, y);
  if (!pair || load<u32>(pair, 12) != id) return;
  const a = load<u64>(splits + (<usize>x << 3)), b = load<u64>(splits + (<usize>y << 3));
  const rank = <u64>load<u32>(pair, 8);
  // merges must come in the order of their ranks, else the undoing in `fits` goes wrong
  if (a != -1 && b != -1 && a >> 40 < rank && b >> 40 < rank) store<u64>(at, (rank << 40) | (<u64>x << 20) | <u64>y);
}
/** Does the token's own text merge to it alone? */
export function encodesItself(id: u32): bool {
  const from = load<u32>(tokenOffsets + (<usize>id << 2));
  const n = merge(tokenBytes + from, <i32>(load<u32>(tokenOffsets + (<usize>id << 2), 4) - from));
  return n == 1 && load<u32>(result) == id;
}

// ---------------------------------------------------------------- classes

@inline function width(b: u32): usize {
  return b < 0xc0 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf8 ? 4 : 1;
}
@inline function wide(p: usize, b: u32): u32 {
  let c: u32;
  if (b < 0xe0) c = ((b & 31) << 6) | (load<u8>(p, 1) & 63);
  else if (b < 0xf0) c = ((b & 15) << 12) | ((<u32>load<u8>(p, 1) & 63) << 6) | (load<u8>(p, 2) & 63);
  else if (b < 0xf8) c = ((b & 7) << 18) | ((<u32>load<u8>(p, 1) & 63) << 12) | ((<u32>load<u8>(p, 2) & 63) << 6) | (load<u8>(p, 3) & 63);
  else return 0;
  return load<u8>(classPages + (<usize>load<u16>(classIndex + ((<usize>c >> 8) << 1)) << 8) + (c & 255)) & 127;
}
/** Class of the character at p. 0 for the sentinel 255. */
@inline function cls(p: usize): u32 {
  const b: u32 = load<u8>(p);
  return b < 128 ? <u32>load<u8>(classBits + b) : wide(p, b);
}
@inline function isNewline(b: u32): bool {
  return b == 10 || b == 13;
}

// ---------------------------------------------------------------- one piece at a time (any text)

function contraction(p: usize): usize {
  const a: u32 = load<u8>(p, 1) | 32;
  if (a == 115 || a == 116 || a == 109 || a == 100) return 2; // s t m d
  if (a == 114 || a == 118) return (load<u8>(p, 2) | 32) == 101 ? 3 : 0; // re ve
  if (a == 108) return (load<u8>(p, 2) | 32) == 108 ? 3 : 0; // ll
  if (load<u8>(p, 1) == 0xc5 && load<u8>(p, 2) == 0xbf) return 3; // U+017F folds to s
  return 0;
}
function space(p: usize, n: usize): usize {
  let j = p, last = p, nl: usize = 0;
  while (j < n) {
    const c = cls(j);
    const w = width(load<u8>(j));
    if (c & NL) nl = j + 1;
    else if (!(c & WS)) break;
    last = j;
    j += w;
  }
  if (nl) return nl;
  if (j >= n || last == p) return j;
  return last;
}
@inline function run(q: usize, mask: u32): usize {
  while (cls(q) & mask) q += width(load<u8>(q));
  return q;
}
function digits(q: usize, mask: u32): usize {
  for (let k = 1; k < maxDigits; k++) {
    if (!(cls(q) & mask)) break;
    q += width(load<u8>(q));
  }
  return q;
}
function pieceCl100k(p: usize, n: usize): usize {
  const b: u32 = load<u8>(p);
  const c = cls(p);
  let q = p + width(b);
  if (c & LT) return run(q, LT);
  if (c & NU) return digits(q, NU);
  if (b == 39) {
    const l = contraction(p);
    if (l) return p + l;
  }
  if (!(c & NL)) {
    const d = cls(q);
    if (d & LT) return run(q + width(load<u8>(q)), LT);
    if (c & OT || (b == 32 && d & OT)) {
      q = run(q, OT);
      while (isNewline(load<u8>(q))) q++;
      return q;
    }
  }
  return space(p, n);
}
function word1(s: usize): usize {
  let u = s, both: usize = 0;
  while (true) {
    const c = cls(u);
    if (!(c & UP)) break;
    u += width(load<u8>(u));
    if (c & LO) both = u;
  }
  const e = run(u, LO);
  return e > u ? e : both;
}
function word2(s: usize): usize {
  const u = run(s, UP);
  return u == s ? 0 : run(u, LO);
}
function pieceO200k(p: usize, n: usize): usize {
  const b: u32 = load<u8>(p);
  const c = cls(p);
  let q = p + width(b);
  if (c & NU) return digits(q, NU);
  const prefix = !(c & (LT | NL));
  const d = cls(q);
  if (c & (UP | LO) || (prefix && d & (UP | LO))) {
    let e: usize = 0;
    if (prefix) e = word1(q);
    if (!e && c & (UP | LO)) e = word1(p);
    if (!e && prefix) e = word2(q);
    if (!e) e = word2(p);
    if (e) return contractions && load<u8>(e) == 39 ? e + contraction(e) : e;
  }
  if (c & OT || (b == 32 && d & OT)) {
    q = run(q, OT);
    while (true) {
      const y: u32 = load<u8>(q);
      if (!isNewline(y) && y != 47) return q;
      q++;
    }
  }
  return space(p, n);
}
function runSame(q: usize, mask: u32, cjk: u32): usize {
  while (true) {
    const f = cls2(q);
    if (!(f & mask) || (f & D_CJK) != cjk) return q;
    q += width(load<u8>(q));
  }
}
/** DeepSeek's classes use all eight bits. */
@inline function cls2(p: usize): u32 {
  const b: u32 = load<u8>(p);
  if (b < 128) return load<u8>(classBits + b);
  return wide(p, b);
}
function pieceDeepseek(p: usize, n: usize): usize {
  let gap = false;
  let cjk: u32 = 0;
  while (p < n) {
    const b: u32 = load<u8>(p);
    const c = cls2(p);
    if (gap && (c & D_N || (c & D_CJK) != cjk)) return p;
    const q = p + width(b);
    if (c & D_N) return digits(q, D_N);
    cjk = c & D_CJK;
    let e: usize = 0;
    let d = cls2(q);
    if (d & D_N || (d & D_CJK) != cjk) d = 0; // the fragment ends there
    if (c & D_PS && b < 128 && d & D_AL) {
      e = q + 1;
      while (cls2(e) & D_AL) e++;
    } else if (c & D_LM || (c & D_PFX && d & D_LM)) {
      e = runSame(c & D_LM ? q : q + width(load<u8>(q)), D_LM, cjk);
    } else if (c & D_PS || (b == 32 && d & D_PS)) {
      e = runSame(q, D_PS, cjk);
      if (!cjk) while (isNewline(load<u8>(e))) e++;
    } else if (c & (D_WS | D_NL)) {
      let j = p, last = p, nl: usize = 0, f: u32 = 0;
      while (j < n) {
        f = cls2(j);
        if (f & D_NL) nl = j + 1;
        else if (!(f & D_WS)) break;
        last = j;
        j += width(load<u8>(j));
      }
      if (nl) e = nl;
      else if (j >= n || last == p || f & (D_N | D_CJK)) e = j;
      else e = last;
    }
    if (e) return gap ? p : e;
    gap = true; // no branch matches: such text forms a piece of its own
    p = q;
  }
  return n;
}
@inline function piece(p: usize, n: usize): usize {
  if (family == CL100K) return pieceCl100k(p, n);
  if (family == O200K) return pieceO200k(p, n);
  return pieceDeepseek(p, n);
}

// ---------------------------------------------------------------- ASCII, 64 bytes at a time

@inline function bits(a: v128, b: v128, c: v128, d: v128): u64 {
  const lo: u32 = v128.bitmask<i8>(a) | (v128.bitmask<i8>(b) << 16);
  const hi: u32 = v128.bitmask<i8>(c) | (v128.bitmask<i8>(d) << 16);
  return (<u64>hi << 32) | <u64>lo;
}
@inline function eq(v: v128, c: u8): v128 {
  return v128.eq<i8>(v, i8x16.splat(c));
}
@inline function below(v: v128, from: u8, count: u8): v128 {
  return v128.lt<u8>(v128.sub<i8>(v, i8x16.splat(from)), i8x16.splat(count));
}
@inline function lower(v: v128): v128 {
  return v128.or(v, i8x16.splat(32));
}
/** Not a printable ASCII character, tab or newline. */
@inline function strange(v: v128): v128 {
  const ws = v128.or(v128.or(eq(v, 9), eq(v, 10)), eq(v, 13));
  return v128.or(v128.andnot(v128.lt<i8>(v, i8x16.splat(32)), ws), eq(v, 127));
}

/**
 * Piece starts among the 64 bytes at p, where p itself starts a piece: bit i says that a piece starts at p + i.
 * Only starts that the bytes seen decide are given. With no other bit than 0 the caller takes one piece the slow way.
 */
function starts(p: usize): u64 {
  const a = v128.load(p), b = v128.load(p, 16), c = v128.load(p, 32), d = v128.load(p, 48);
  const odd = bits(strange(a), strange(b), strange(c), strange(d));
  const V: u64 = ctz(odd); // bytes seen, 64 if none is strange
  if (V < 4) return 1;
  const valid: u64 = odd ? ((<u64>1 << V) - 1) : ~(<u64>0);
  const L = bits(below(lower(a), 97, 26), below(lower(b), 97, 26), below(lower(c), 97, 26), below(lower(d), 97, 26)) & valid;
  const N = bits(below(a, 48, 10), below(b, 48, 10), below(c, 48, 10), below(d, 48, 10)) & valid;
  const E = bits(v128.or(eq(a, 10), eq(a, 13)), v128.or(eq(b, 10), eq(b, 13)), v128.or(eq(c, 10), eq(c, 13)), v128.or(eq(d, 10), eq(d, 13))) & valid;
  const SP = bits(eq(a, 32), eq(b, 32), eq(c, 32), eq(d, 32)) & valid;
  const W = SP | (bits(eq(a, 9), eq(b, 9), eq(c, 9), eq(d, 9)) & valid);
  const Q = !contractions ? 0 : bits(eq(a, 39), eq(b, 39), eq(c, 39), eq(d, 39)) & valid;
  const O = valid & ~(L | N | E | W);

  // [\r\n]* (o200k: [\r\n/]*) after a punctuation run belongs to it
  let X = E;
  if (family == O200K) X |= bits(eq(a, 47), eq(b, 47), eq(c, 47), eq(d, 47)) & valid;
  const first = (O << 1) & E;
  const ext = (X & ~(X + first)) | first;
  const Of = O & ~ext;
  let Ef = E & ~ext;
  let Wf = W;
  // spaces that a newline follows belong to the newline's piece
  let back = Wf & (Ef >> 1);
  if (back) {
    let f: u64 = back;
    do {
      back = (back >> 1) & Wf;
      f |= back;
    } while (back);
    Ef |= f;
    Wf &= ~f;
  }
  let Z = Wf & ~(Wf >> 1); // last space of a run
  const spaceBefore = (SP & Wf) << 1;
  const single = Of & ~(Of << 1) & ~(Of >> 1) & ~spaceBefore;
  let Lstart = L & ~(L << 1) & ~((Wf | single) << 1);
  if (family == DEEPSEEK) Z &= ~(N >> 1);
  let U: u64 = 0;
  if (family == O200K) {
    U = bits(below(a, 65, 26), below(b, 65, 26), below(c, 65, 26), below(d, 65, 26)) & valid;
    Lstart |= U & ((L & ~U) << 1);
  }
  let Nstart = N & ~(N << 1);
  if (maxDigits == 1) Nstart = N;
  else {
    const fourth = N & (N << 1) & (N << 2) & (N << 3);
    let t = Nstart;
    while (true) {
      t = (t << 3) & fourth;
      if (!t) break;
      Nstart |= t;
    }
  }
  let S = (Ef & ~(Ef << 1)) | (Wf & ~(Wf << 1)) | Z | Lstart | (Of & ~(Of << 1) & ~spaceBefore) | Nstart | 1;

  let q = Q & single & (L >> 1);
  if (family == O200K) q &= L << 1;
  if (q) {
    let after: u64 = 64;
    do {
      const i = ctz(q);
      q &= q - 1;
      if (family == O200K && i == after) continue; // an apostrophe right after a contraction starts a word
      const l = <u64>contraction(p + <usize>i);
      if (l && i + l < 64) {
        if (family == O200K) S &= ~(((<u64>1 << l) - 1) << i);
        after = i + l;
        S |= <u64>1 << after;
      } else if (l) S &= (<u64>1 << i) - 1;
    } while (q);
  }

  // trust no start inside or after a space run that may go on, nor among the last three bytes
  const solid = valid & ~(E | W);
  const r: u64 = 64 - clz(solid);
  const trust = min(r, V - 3);
  return S & ((<u64>2 << trust) - 1);
}

// ---------------------------------------------------------------- ids of one piece

@inline function hash8(key: u64): u32 {
  return <u32>((key * K0) >> 32);
}
@inline function hash16(k0: u64, k1: u64): u32 {
  return <u32>((k0 * K0 + k1 * K1) >> 32);
}

/** Ids of the bytes [s, s + len) to o; returns the new o. `whole` is false for a part of a piece. 8 bytes from s on are readable. */
@inline function put(s: usize, len: i32, o: usize, whole: bool): usize {
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
  // searching beats merging in words of other scripts (and in long ones), not in short ASCII words
  let n = family != GEMMA && load<u8>(s + <usize>len - 1) > 127 ? search(s, len) : 0;
  if (!n) n = merge(s, len);
  for (let i = 0; i < n; i++) store<u32>(o + (<usize>i << 2), load<u32>(result + (<usize>i << 2)));
  if (n <= 3) {
    if (load<u32>(w, 28)) {
      v128.store(w, v128.load(w), 32);
      v128.store(w, v128.load(w, 16), 48);
    }
    store<u64>(w, k0);
    store<u64>(w, k1, 8);
    store<u32>(w, load<u32>(result), 16);
    store<u32>(w, load<u32>(result, 4), 20);
    store<u32>(w, load<u32>(result, 8), 24);
    store<u32>(w, (len << 8) | n, 28);
  }
  return o + (<usize>n << 2);
}
/** Hash of any number of bytes. */
function hashLong(s: usize, len: i32): u32 {
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
function same(a: usize, b: usize, len: i32): bool {
  const e = a + <usize>len;
  for (; a + 8 <= e; a += 8, b += 8) if (load<u64>(a) != load<u64>(b)) return false;
  for (; a < e; a++, b++) if (load<u8>(a) != load<u8>(b)) return false;
  return true;
}
function findTokenBy(h: u32, table: usize, mask: u32, s: usize, len: i32): i32 {
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
function putLong(s: usize, len: i32, o: usize, whole: bool): usize {
  const h = hashLong(s, len);
  let id = findTokenBy(h, longVocab, longVocabMask, s, len);
  if (id < 0 && whole && wholeOnlyMask) id = findTokenBy(h, wholeOnly, wholeOnlyMask, s, len);
  if (id >= 0) {
    store<u32>(o, id);
    return o + 4;
  }
  const at = longWords + <usize>(h & longWordsMask) * LONG_ENTRY;
  if (len <= LONG_KEY && load<u32>(at) == h && <i32>load<u32>(at, 4) == len && same(at + 12, s, len)) {
    const n: usize = load<u32>(at, 8);
    memory.copy(o, at + 128, n << 2);
    return o + (n << 2);
  }
  let n = family != GEMMA && len <= 60 ? search(s, len) : 0;
  if (!n) n = merge(s, len);
  memory.copy(o, result, <usize>n << 2);
  if (len <= LONG_KEY && n <= LONG_IDS) {
    store<u32>(at, h);
    store<u32>(at, len, 4);
    store<u32>(at, n, 8);
    memory.copy(at + 12, s, len);
    memory.copy(at + 128, result, <usize>n << 2);
  }
  return o + (<usize>n << 2);
}

// ---------------------------------------------------------------- merging

@inline function tokenBit(h: u32, len: i32): u32 {
  return (h + <u32>len * 0x9e3779b1) >> 11;
}
function setTokenBit(h: u32, len: i32): void {
  const g = tokenBit(h, len);
  const at = tokenFilter + (<usize>(g >> 5) << 2);
  store<u32>(at, load<u32>(at) | (1 << (g & 31)));
}
@inline function hasTokenBit(h: u32, len: i32): u32 {
  const g = tokenBit(h, len);
  return (load<u32>(tokenFilter + (<usize>(g >> 5) << 2)) >> (g & 31)) & 1;
}
/** Token of exactly these 2 to 16 bytes, or -1. */
@inline function tokenAt(s: usize, len: i32): i32 {
  if (len <= 8) {
    const key = load<u64>(s) << (64 - (<u64>len << 3));
    const h = hash8(key);
    return hasTokenBit(h, len) ? shortToken(key, h, len) : -1;
  }
  const k0 = load<u64>(s), k1 = load<u64>(s + <usize>len - 8);
  const h = hash16(k0, k1);
  return hasTokenBit(h, len) ? mediumToken(k0, k1, h, len) : -1;
}
function shortToken(key: u64, h: u32, len: i32): i32 {
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
/**
 * May token b stand right of token a? Undo the younger of the two again and again; no merge across the border may have been due
 * before that moment.
 */
function fits(a: u32, b: u32): bool {
  let before = NONE;
  while (true) {
    const pair = findPair(a, b);
    if (pair && load<u32>(pair, 8) < before) return false;
    const sa = load<u64>(splits + (<usize>a << 3)), sb = load<u64>(splits + (<usize>b << 3));
    if (!(sa | sb)) return true;
    if (sa >> 40 > sb >> 40) {
      before = <u32>(sa >> 40);
      a = <u32>sa & 0xfffff;
    } else {
      before = <u32>(sb >> 40) + 1;
      b = <u32>(sb >> 20) & 0xfffff;
    }
  }
}
/**
 * BPE of 2 to 60 bytes that are no token, without merging: the longest token at each place that fits its left neighbour, else a
 * shorter one, else back. A sequence in which all neighbours fit is the result of merging, and the only one.
 * Returns the number of ids in `result`, 0 if the word has to be merged.
 */
function search(s: usize, len: i32): i32 {
  const T = scratch, L = scratch + 256;
  result = T;
  let k: usize = 0;
  let at = 0;
  let size = min(16, len - 1);
  let dead: u64 = 0;
  while (true) {
    let id = -1;
    for (; size > 0; size--) {
      if ((dead >> <u64>(at + size)) & 1) continue;
      id = size == 1 ? load<i32>(byteIds + (<usize>load<u8>(s + at) << 2)) : tokenAt(s + at, size);
      if (id < 0) continue;
      if (load<u64>(splits + (<usize>id << 3)) == -1) return 0;
      if (!k || fits(load<u32>(T + ((k - 1) << 2)), id)) break;
      id = -1;
    }
    if (id >= 0) {
      store<u32>(T + (k << 2), id);
      store<u8>(L + k, <u8>size);
      k++;
      at += size;
      if (at == len) return <i32>k;
      size = min(16, len - at);
    } else {
      if (!k) return 0;
      dead |= <u64>1 << <u64>at;
      k--;
      size = load<u8>(L + k);
      at -= size;
      size--;
    }
  }
}

/** Address of the merge (x, y) in `pairs`, or 0. */
@inline function findPair(x: u32, y: u32): usize {
  const key = (<u64>x << 20) | <u64>y;
  const h = key * K0;
  if (!((load<u32>(pairFilter + (<usize>(h >> 47) << 2)) >> (<u32>(h >> 42) & 31)) & 1)) return 0;
  return findFar(key, h);
}
function findFar(key: u64, h: u64): usize {
  let at = hotPairs + (<usize>(((h >> 32) * hotSlots) >> 32) << 4);
  while (load<u32>(at, 8)) {
    if (load<u64>(at) == key) return at;
    at += 16;
  }
  at = pairs + (<usize>(((h >> 32) * pairSlots) >> 32) << 4);
  while (load<u32>(at, 8)) {
    if (load<u64>(at) == key) return at;
    at += 16;
  }
  return 0;
}
/** BPE of [s, s + len) into `result`; returns the number of ids. */
function merge(s: usize, len: i32): i32 {
  if (family == GEMMA) return mergeGemma(s, len);
  if (len > 60) {
    reserve(<usize>len * 36 + 64);
    for (let i: usize = 0; i < <usize>len; i++) store<u32>(scratch + (i << 2), load<u32>(byteIds + (<usize>load<u8>(s + i) << 2)));
    return mergeHeap(len);
  }
  // per symbol: id, rank << 6 | index of the merge with the next one (so one minimum finds both), its id, next and previous index
  const P = scratch, R = scratch + 256, M = scratch + 512, NX = scratch + 768, PV = scratch + 832;
  const n = <usize>len;
  let before: usize = load<u8>(s);
  store<u32>(P, load<u32>(byteIds + (before << 2)));
  for (let i: usize = 1; i < n; i++) {
    const y: usize = load<u8>(s + i);
    store<u32>(P + (i << 2), load<u32>(byteIds + (y << 2)));
    const pair = bytePairs + (((before << 8) | y) << 3);
    const r = load<u32>(pair);
    store<u32>(R + ((i - 1) << 2), ((r - 1) << 6) | <u32>(i - 1) | (<u32>0 - <u32>(r == 0)));
    store<u32>(M + ((i - 1) << 2), load<u32>(pair, 4));
    store<u8>(NX + i - 1, i);
    store<u8>(PV + i, i - 1);
    before = y;
  }
  store<u32>(R + ((n - 1) << 2), NONE);
  store<u8>(NX + n - 1, n);
  return mergeLoop(len);
}
/** The loop of `merge`, with `len` symbols and their ranks in place. */
function mergeLoop(len: i32): i32 {
  const P = scratch, R = scratch + 256, M = scratch + 512, NX = scratch + 768, PV = scratch + 832;
  const n = <usize>len;
  const last = R + ((n - 1) << 2);
  let left = len;
  while (left > stopAt) {
    let best = load<u32>(R);
    for (let r = R + 4; r < last; r += 4) {
      const x = load<u32>(r);
      best = select<u32>(x, best, x < best);
    }
    if (best == NONE) break;
    const i = <usize>(best & 63);
    const id = load<u32>(M + (i << 2));
    const j = <usize>load<u8>(NX + i); // the symbol taken in
    const k = <usize>load<u8>(NX + j);
    store<u32>(P + (i << 2), id);
    store<u32>(R + (j << 2), NONE);
    store<u8>(NX + i, <u8>k);
    store<u8>(PV + k, <u8>i);
    let at: usize = 0;
    if (k < n) at = findPair(id, load<u32>(P + (k << 2)));
    rankPair(R, M, i, at);
    if (i) {
      const h = <usize>load<u8>(PV + i);
      rankPair(R, M, h, findPair(load<u32>(P + (h << 2)), id));
    }
    left--;
  }
  result = P;
  for (let i: usize = 0, k: usize = P; i < n; i = load<u8>(NX + i), k += 4) store<u32>(k, load<u32>(P + (i << 2)));
  return left;
}
@inline function rankPair(R: usize, M: usize, i: usize, at: usize): void {
  let r = NONE;
  if (at) {
    r = ((load<u32>(at, 8) - 1) << 6) | <u32>i;
    store<u32>(M + (i << 2), load<u32>(at, 12));
  }
  store<u32>(R + (i << 2), r);
}
/** The same with a heap of rank << 32 | position over a linked list: O(n log n). Symbols at scratch, n of them. */
function mergeHeap(n: i32): i32 {
  const size = <usize>n << 2;
  const ID = scratch, NX = scratch + size, PV = NX + size, H = (PV + size + 7) & ~7;
  let heap: i32 = 0;
  for (let i = 0; i < n; i++) {
    const at = <usize>i << 2;
    store<i32>(NX + at, i + 1 < n ? i + 1 : -1);
    store<i32>(PV + at, i - 1);
    if (i + 1 < n) {
      const f = findPair(load<u32>(ID + at), load<u32>(ID + at, 4));
      if (f) heap = push(H, heap, (<u64>load<u32>(f, 8) << 32) | <u64>i);
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
    if (!f || load<u32>(f, 8) != r) continue;
    const id = load<u32>(f, 12);
    store<u32>(ID + p, id);
    store<u32>(ID + q, NONE);
    const q2 = load<i32>(NX + q);
    store<i32>(NX + p, q2);
    if (q2 >= 0) {
      store<i32>(PV + (<usize>q2 << 2), <i32>(p >> 2));
      const g = findPair(id, load<u32>(ID + (<usize>q2 << 2)));
      if (g) heap = push(H, heap, (<u64>load<u32>(g, 8) << 32) | <u64>(p >> 2));
    }
    const l = load<i32>(PV + p);
    if (l >= 0) {
      const g = findPair(load<u32>(ID + (<usize>l << 2)), id);
      if (g) heap = push(H, heap, (<u64>load<u32>(g, 8) << 32) | <u64>l);
    }
  }
  let k: usize = 0;
  for (let i = 0; i >= 0; i = load<i32>(NX + (<usize>i << 2))) {
    store<u32>(ID + (k << 2), load<u32>(ID + (<usize>i << 2))); // k <= i
    k++;
  }
  result = ID;
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

// ---------------------------------------------------------------- cutting between characters that no merge joins

@inline function joinBit(a: u32, b: u32): u32 {
  const h: u32 = (a * 0x9e3779b1) ^ (b * 0x85ebca6b);
  return ((h ^ (h >> 15)) * 0x2c1b3c6d) >> joinShift;
}
@inline function joined(a: u32, b: u32): u32 {
  const g = joinBit(a, b);
  return ((load<u32>(joinFilter + (<usize>(g >> 5) << 2)) >> (g & 31)) & 1) | <u32>load<u8>(joinBorders + (((a & 63) << 4) | (b >> 12)));
}
@inline function three(p: usize): u32 {
  return ((<u32>load<u8>(p) & 15) << 12) | ((<u32>load<u8>(p, 1) & 63) << 6) | (<u32>load<u8>(p, 2) & 63);
}
/**
 * A piece with bytes above 127: between two characters of three bytes that no merge joins, the piece may be cut.
 * Up to 64 characters at a time; no branch depends on a cut before all of them are known.
 */
function putWide(s: usize, e: usize, o: usize): usize {
  let from = s;
  let p = s;
  while (p < e) {
    const b: u32 = load<u8>(p);
    if ((b & 0xf0) != 0xe0) {
      p += width(b);
      continue;
    }
    let m: u64 = 0;
    let before = three(p);
    let q = p + 3;
    let i: u64 = 1;
    while (i < 64 && q < e && (load<u8>(q) & 0xf0) == 0xe0) {
      const c = three(q);
      m |= <u64>(joined(before, c) ^ 1) << i;
      before = c;
      q += 3;
      i++;
    }
    while (m) {
      const cut = p + <usize>ctz(m) * 3;
      m &= m - 1;
      o = put(from, <i32>(cut - from), o, false);
      from = cut;
    }
    p = i < 64 ? q : q - 3; // the last character of a full batch is also the first of the next
  }
  return put(from, <i32>(e - from), o, from == s);
}

// ---------------------------------------------------------------- sections

/** A section without added tokens; the byte at n is the sentinel 255 and 64 readable bytes follow it. */
function section(p: usize, n: usize, o: usize): usize {
  while (p < n) {
    if (!(load<u32>(p) & 0x80808080)) {
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
  return o;
}

function matchAdded(p: usize, n: usize): i32 {
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
    if (id >= 0) {
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
/**
 * Encodes the bytes [p, n) to o; returns the number of ids. 80 bytes after n are readable and the first is writable.
 * split: 0 added tokens are plain text, 1 they are found, 2 found, but special ones are plain text.
 */
export function encode(p: usize, n: usize, out: usize, split: i32): i32 {
  let o = out;
  let s = p;
  if (split) {
    while (true) {
      p = findAdded(p, n, split);
      if (p >= n) break;
      if (p > s) o = encodeSection(s, p, o);
      store<u32>(o, foundId);
      o += 4;
      p = s = foundEnd;
    }
  }
  if (s < n) o = encodeSection(s, n, o);
  return <i32>((o - out) >> 2);
}
/** First added token in [p, n): its address, or n; then addedId and addedEnd tell more. */
export function findAdded(p: usize, n: usize, split: i32): usize {
  while (true) {
    p = nextAdded(p, n);
    if (p >= n) return n;
    const id = matchAdded(p, n);
    if (id < 0) p++;
    else if (split == 2 && id & SPECIAL) p += matchLength;
    else {
      foundId = id & ~SPECIAL;
      foundEnd = p + matchLength;
      return p;
    }
  }
}
export function addedId(): i32 {
  return foundId;
}
export function addedEnd(): usize {
  return foundEnd;
}
@inline function encodeSection(s: usize, e: usize, o: usize): usize {
  const save: u32 = load<u8>(e);
  store<u8>(e, 255);
  o = family == GEMMA ? sectionGemma(s, spaces(s, e), o) : section(s, e, o);
  store<u8>(e, save);
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

// ---------------------------------------------------------------- Gemma: no pieces, characters instead of bytes, ' ' stands for U+2581

/** Character at p as a number of at most 21 bits; a space and U+2581 are the same symbol. */
@inline function codePoint(p: usize): u32 {
  const b: u32 = load<u8>(p);
  if (b < 0x80) return b;
  if (b < 0xe0) return ((b & 31) << 6) | (load<u8>(p, 1) & 63);
  if (b < 0xf0) return three(p);
  return ((b & 7) << 18) | ((<u32>load<u8>(p, 1) & 63) << 12) | ((<u32>load<u8>(p, 2) & 63) << 6) | (load<u8>(p, 3) & 63);
}
/** Merging starts from characters, or from the bytes of those that are no tokens. */
function mergeGemma(s: usize, len: i32): i32 {
  reserve(<usize>len * 36 + 1024);
  const P = scratch;
  let n: usize = 0;
  const e = s + <usize>len;
  for (let p = s; p < e; ) {
    const w = width(load<u8>(p));
    const key = load<u64>(p) << (64 - (<u64>w << 3));
    const id = shortToken(key, hash8(key), <i32>w);
    if (id >= 0) {
      store<u32>(P + (n << 2), id);
      n++;
    } else {
      for (let i: usize = 0; i < w; i++, n++) store<u32>(P + (n << 2), load<u32>(byteIds + (<usize>load<u8>(p + i) << 2)));
    }
    p += w;
  }
  result = P;
  if (n < 2) return <i32>n;
  if (n > 60) return mergeHeap(<i32>n);
  const R = scratch + 256, M = scratch + 512, NX = scratch + 768, PV = scratch + 832;
  for (let i: usize = 0; i < n; i++) {
    store<u8>(NX + i, i + 1);
    store<u8>(PV + i + 1, i);
    rankPair(R, M, i, i + 1 < n ? findPair(load<u32>(P + (i << 2)), load<u32>(P + (i << 2), 4)) : 0);
  }
  return mergeLoop(<i32>n);
}
/** Cuts wherever no merge joins the two characters. U+2581 in the text must have become a space. */
function sectionGemma(p: usize, n: usize, o: usize): usize {
  let from = p;
  let before = codePoint(p);
  p += width(load<u8>(p));
  while (p < n) {
    const b: u32 = load<u8>(p);
    const c = codePoint(p);
    const apart = (before | c) < 128 ? <u32>load<u8>(asciiJoins + ((before << 7) | c)) ^ 1 : joinedFar(before, c) ^ 1;
    if (apart) {
      o = put(from, <i32>(p - from), o, false);
      from = p;
    }
    before = c;
    p += width(b);
  }
  return put(from, <i32>(n - from), o, false);
}
function joinedFar(a: u32, b: u32): u32 {
  const g = joinBit(a, b);
  return (load<u32>(joinFilter + (<usize>(g >> 5) << 2)) >> (g & 31)) & 1;
}
/** A joined pair of Gemma's. */
export function insertAnyJoin(a: u32, b: u32): void {
  if ((a | b) < 128) store<u8>(asciiJoins + ((a << 7) | b), 1);
  else insertJoin(a, b);
}
/** U+2581 becomes a space in [p, n): the new end. */
function spaces(p: usize, n: usize): usize {
  while (p < n && !v128.any_true(eq(v128.load(p), 0xe2))) p += 16;
  if (p >= n) return n;
  let q = p;
  while (p < n) {
    if (load<u8>(p) == 0xe2 && p + 2 < n && load<u8>(p, 1) == 0x96 && load<u8>(p, 2) == 0x81) {
      store<u8>(q++, 32);
      p += 3;
    } else store<u8>(q++, load<u8>(p++));
  }
  return q;
}
