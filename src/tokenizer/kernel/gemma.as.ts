/** Gemma: no pieces, characters instead of bytes, ' ' stands for U+2581. */
import { codePoint, width } from "./characters.as";
import { insertJoin, joinBit } from "./joins.as";
import { hash8, shortToken } from "./lookup.as";
import { mergeHeap, mergeSymbols, symbols } from "./merge.as";
import { put } from "./put.as";
import { asciiJoins, byteIds, ceiling, joinFilter, reserve, scratch, setResult } from "./state.as";
import { eq } from "./window.as";

/** Merging starts from characters, or from the bytes of those that are no tokens. */
export function mergeGemma(s: usize, len: i32): i32 {
  reserve(<usize>len * 36 + 1024);
  const P = <usize>len > 60 ? scratch : symbols();
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
  setResult(P);
  if (n < 2) return <i32>n;
  if (n > 60) return mergeHeap(<i32>n);
  if (P == scratch) memory.copy(symbols(), scratch, n << 2);
  return mergeSymbols(<i32>n);
}

/** Cuts wherever no merge joins the two characters. U+2581 in the text must have become a space. */
export function sectionGemma(p: usize, n: usize, o: usize): usize {
  let from = p;
  let before = codePoint(p);
  p += width(load<u8>(p));
  while (p < n) {
    const b: u32 = load<u8>(p);
    const c = codePoint(p);
    const apart = (before | c) < 128 ? <u32>load<u8>(asciiJoins + ((before << 7) | c)) ^ 1 : joinedFar(before, c) ^ 1;
    if (apart) {
      o = put(from, <i32>(p - from), o, false);
      if (o >= ceiling) return o;
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
export function spaces(p: usize, n: usize): usize {
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
