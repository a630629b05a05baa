/** Pieces of more bytes than a window: merged in windows that overlap, so that time is linear and scratch small. */
import { hashLong, same } from "./lookup.as";
import { merge } from "./merge.as";
import { ceiling, fits, gaps, memo, MEMO_BYTES, NONE, result, spend, tokenOffsets } from "./state.as";

/** Bytes of a window. */
export const WINDOW: usize = 512;
/** About the nanoseconds that merging takes for each byte of a window. */
const COST: i32 = 75;
/** Of a window: hash, start, where its ids were written, their number, bytes they stand for, token before, last token. */

/**
 * BPE of [s, e) to o; returns the new o. A row of tokens is what merging gives if each two neighbours, merged for themselves, stay as
 * they are: so all tokens of a window but the last quarter's are kept, the next window begins behind them, and the two tokens at the
 * border are tried. If they do not stay, everything is done again with larger windows, at last with a single one.
 */
export function putHuge(s: usize, e: usize, o: usize): usize {
  for (let size = WINDOW; o < ceiling; size <<= 2) {
    const end = inWindows(s, e, o, size);
    if (end) return end;
  }
  return o;
}

function inWindows(s: usize, e: usize, o: usize, window: usize): usize {
  memory.fill(memo, 0, MEMO_BYTES);
  let before = NONE;
  let p = s;
  while (true) {
    let size = e - p;
    const last = size <= window || gaps; // an unknown token does not tell its bytes
    let m: usize = 0;
    let h: u32 = 0;
    if (!last) {
      size = window;
      while ((load<u8>(p + size) & 0xc0) == 0x80) size--;
      // a text that repeats itself has the same windows again
      h = hashLong(p, <i32>size);
      m = memo + <usize>((h << 5) & <u32>(MEMO_BYTES - 1));
      if (load<u32>(m) == h && load<u32>(m, 4) && load<u32>(m, 20) == before && same(<usize>load<u32>(m, 4), p, <i32>size)) {
        const n = <usize>load<u32>(m, 12) << 2;
        if (!fits(o + n)) return 0;
        memory.copy(o, <usize>load<u32>(m, 8), n);
        o += n;
        p += <usize>load<u32>(m, 16);
        before = load<u32>(m, 24);
        continue;
      }
    }
    if (!spend(<i32>min<usize>(size * COST, 1 << 30), o)) return 0;
    const n = <usize>merge(p, <i32>size);
    let kept = n;
    if (!last) {
      let bytes: usize = 0;
      for (kept = 0; kept < n; kept++) {
        const more = lengthOf(load<u32>(result + (kept << 2)));
        if (bytes + more > size - (size >> 2)) break;
        bytes += more;
      }
      if (!kept) return 0;
      size = bytes;
    }
    memory.copy(o, result, kept << 2);
    if (before != NONE && !stay(before, load<u32>(o), p)) return 0;
    if (m) {
      store<u32>(m, h);
      store<u32>(m, <u32>p, 4);
      store<u32>(m, <u32>o, 8);
      store<u32>(m, <u32>kept, 12);
      store<u32>(m, <u32>size, 16);
      store<u32>(m, before, 20);
    }
    o += kept << 2;
    p += size;
    if (last) return o;
    before = load<u32>(o - 4);
    store<u32>(m, before, 24);
  }
}

/** Are tokens a and b, with their border at p, what merging gives for their text? */
function stay(a: u32, b: u32, p: usize): bool {
  const left = lengthOf(a);
  const n = merge(p - left, <i32>(left + lengthOf(b)));
  return n == 2 && load<u32>(result) == a && load<u32>(result, 4) == b;
}

@inline
function lengthOf(id: u32): usize {
  return <usize>(load<u32>(tokenOffsets + (<usize>id << 2), 4) - load<u32>(tokenOffsets + (<usize>id << 2)));
}
