/** Cutting ASCII words between bytes that no merge joins: `getText` is mostly `get` and `Text`, which are tokens. */
import { borderFilter, bytePairs, K0, tokenBytes, tokenOffsets } from "./state.as";

/** Bytes on each side of a border that are looked at. */
const NEAR: u64 = 3;

/** What places the last `l` and first `r` bytes around a border in the filter: `left` holds the 3 before it, the last one on top. */
@inline
function borderHash(left: u64, right: u64, l: u64, r: u64): u64 {
  const key = ((left >> ((NEAR - l) << 3)) << 28) | ((right & (((<u64>1) << (r << 3)) - 1)) << 4) | (l << 2) | r;
  return key * K0;
}

@inline
function wordOf(h: u64): usize {
  return borderFilter + (<usize>(h >> 53) << 3);
}

@inline
function bitsOf(h: u64): u64 {
  return (<u64>1 << ((h >> 47) & 63)) | (<u64>1 << ((h >> 41) & 63));
}

@inline
function leftOf(border: usize): u64 {
  return <u64>(load<u32>(border - 4) >> 8);
}

@inline
function rightOf(border: usize): u64 {
  return <u64>(load<u32>(border) & 0xffffff);
}

/** Notes that the tokens x and y are merged. `bytePairs` is filled already. */
export function insertBorder(x: u32, y: u32): void {
  const from = load<u32>(tokenOffsets + (<usize>x << 2)), end = load<u32>(tokenOffsets + (<usize>x << 2), 4);
  const start = load<u32>(tokenOffsets + (<usize>y << 2)), to = load<u32>(tokenOffsets + (<usize>y << 2), 4);
  const b = <usize>load<u8>(tokenBytes + end - 1), c = <usize>load<u8>(tokenBytes + start);
  if ((b | c) > 127 || load<u32>(bytePairs + (((b << 8) | c) << 3))) return;
  const h = borderHash(leftOf(tokenBytes + end), rightOf(tokenBytes + start), min<u64>(end - from, NEAR), min<u64>(to - start, NEAR));
  store<u64>(wordOf(h), load<u64>(wordOf(h)) | bitsOf(h));
}

/**
 * Where the word [s, s + len) of up to 31 bytes may be cut: bit i says that no merge crosses the border before its byte i. `open` has the
 * borders between ASCII bytes that are no merge by themselves; at others nothing is cut. The first merge that crosses a border joins a
 * symbol that ends there with one that begins there; each is a single byte, two, or ends (begins) with the three bytes that stand there.
 * 4 bytes before s are readable.
 */
export function borders(s: usize, len: u32, open: u32): u32 {
  if (!borderFilter) return 0;
  for (let m = open; m; m &= m - 1) {
    const i = ctz(m);
    if (crossed(s + <usize>i, min<u64>(i, NEAR), min<u64>(len - i, NEAR))) open ^= m & (0 - m);
  }
  return open;
}

function crossed(border: usize, before: u64, after: u64): bool {
  const left = leftOf(border), right = rightOf(border);
  let found: u32 = 0;
  for (let l: u64 = 1; l <= before; l++) {
    for (let r: u64 = 1; r <= after; r++) {
      const h = borderHash(left, right, l, r);
      const bits = bitsOf(h);
      found |= <u32>((load<u64>(wordOf(h)) & bits) == bits);
    }
  }
  return found != 0;
}
