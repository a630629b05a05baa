/** Cutting between characters that no merge joins. */
import { three, width } from "./characters.as";
import { put } from "./put.as";
import { ceiling, joinBorders, joinFilter, joinShift } from "./state.as";

export function insertJoin(a: u32, b: u32): void {
  const g = joinBit(a, b);
  const at = joinFilter + (<usize>(g >> 5) << 2);
  store<u32>(at, load<u32>(at) | (1 << (g & 31)));
}

@inline
export function joinBit(a: u32, b: u32): u32 {
  const h: u32 = (a * 0x9e3779b1) ^ (b * 0x85ebca6b);
  return ((h ^ (h >> 15)) * 0x2c1b3c6d) >> joinShift;
}

@inline
function joined(a: u32, b: u32): u32 {
  const g = joinBit(a, b);
  return ((load<u32>(joinFilter + (<usize>(g >> 5) << 2)) >> (g & 31)) & 1) | <u32>load<u8>(joinBorders + (((a & 63) << 4) | (b >> 12)));
}

/**
 * A piece with bytes above 127: between two characters of three bytes that no merge joins, the piece may be cut.
 * Up to 64 characters at a time; no branch depends on a cut before all of them are known.
 */
export function putWide(s: usize, e: usize, o: usize): usize {
  let from = s;
  let p = s;
  while (p < e && o < ceiling) {
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
