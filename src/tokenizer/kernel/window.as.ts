/** Piece starts of ASCII text, 64 bytes at a time. */
import { contraction } from "./pieces.as";
import { contractions, DEEPSEEK, family, maxDigits, O200K, tail } from "./state.as";

@inline
function bits(a: v128, b: v128, c: v128, d: v128): u64 {
  const lo: u32 = v128.bitmask<i8>(a) | (v128.bitmask<i8>(b) << 16);
  const hi: u32 = v128.bitmask<i8>(c) | (v128.bitmask<i8>(d) << 16);
  return (<u64>hi << 32) | <u64>lo;
}

@inline
export function eq(v: v128, c: u8): v128 {
  return v128.eq<i8>(v, i8x16.splat(c));
}

@inline
function below(v: v128, from: u8, count: u8): v128 {
  return v128.lt<u8>(v128.sub<i8>(v, i8x16.splat(from)), i8x16.splat(count));
}

@inline
function lower(v: v128): v128 {
  return v128.or(v, i8x16.splat(32));
}

/** Not a printable ASCII character, tab or newline. */
@inline
function strange(v: v128): v128 {
  const ws = v128.or(v128.or(eq(v, 9), eq(v, 10)), eq(v, 13));
  return v128.or(v128.andnot(v128.lt<i8>(v, i8x16.splat(32)), ws), eq(v, 127));
}

/**
 * Piece starts among the 64 bytes at p, where p itself starts a piece: bit i says that a piece starts at p + i.
 * Only starts that the bytes seen decide are given. With no other bit than 0 the caller takes one piece the slow way.
 */
export function starts(p: usize): u64 {
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

  // [\r\n]* or [\r\n/]* after a punctuation run belongs to it
  let X = E;
  if (tail == 2) X |= bits(eq(a, 47), eq(b, 47), eq(c, 47), eq(d, 47)) & valid;
  const first = tail ? (O << 1) & E : 0;
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
