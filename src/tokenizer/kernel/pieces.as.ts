/** Pre-tokenizer patterns written out over bytes: the end of the piece that begins at `p`, for any text. A section ends in the sentinel 255. */
import {
  cls, cls2, D_AL, D_CJK, D_LM, D_N, D_NL, D_PFX, D_PS, D_WS, HAN, isNewline, LO, LT, NL, NU, OT, UP, width, WS,
} from "./characters.as";
import { CL100K, contractions, family, GPT2, han, maxDigits, O200K, tail } from "./state.as";

export function contraction(p: usize): usize {
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

@inline
function run(q: usize, mask: u32): usize {
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
      if (tail) while (isNewline(load<u8>(q))) q++;
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
      if (!isNewline(y) && (y != 47 || tail < 2)) return q;
      q++;
    }
  }
  return space(p, n);
}

function hanRun(q: usize): usize {
  while (cls2(q) & HAN) q += width(load<u8>(q));
  return q;
}

function runSame(q: usize, mask: u32, cjk: u32): usize {
  while (true) {
    const f = cls2(q);
    if (!(f & mask) || (f & D_CJK) != cjk) return q;
    q += width(load<u8>(q));
  }
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

/** Contractions in lower case only; each kind of character takes a space in front; `maxDigits` 1: digits stand alone. */
function pieceGpt2(p: usize, n: usize): usize {
  const b: u32 = load<u8>(p);
  if (b == 39 && load<u8>(p, 1) >= 97) {
    const l = contraction(p);
    if (l && load<u8>(p, 2) != 0xbf && (l == 2 || load<u8>(p, 2) >= 97)) return p + l;
  }
  const alone: u32 = maxDigits == 1 ? NU : 0;
  let q = p;
  let c = cls(p);
  if (b == 32) {
    const d = cls(p + 1);
    if (d & (LT | NU | OT) & ~alone) {
      q = p + 1;
      c = d;
    }
  }
  if (c & LT) return run(q, LT);
  if (c & alone) return q + width(load<u8>(q));
  if (c & NU) return run(q, NU);
  if (c & OT) return run(q, OT);
  let j = p, last = p;
  let f: u32 = 0;
  while (j < n) {
    f = cls(j);
    if (!(f & (WS | NL))) break;
    last = j;
    j += width(load<u8>(j));
  }
  return j >= n || last == p || f & alone ? j : last;
}

@inline
export function piece(p: usize, n: usize): usize {
  if (family == CL100K) return pieceCl100k(p, n);
  if (family == O200K) return han && cls2(p) & HAN ? hanRun(p) : pieceO200k(p, n);
  if (family == GPT2) return pieceGpt2(p, n);
  return pieceDeepseek(p, n);
}
