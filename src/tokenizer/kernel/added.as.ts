/** Finding added tokens: leftmost, then longest. */
import { added, addedFirst, addedIds, addedMask, addedOne, NONE } from "./state.as";
import { eq } from "./window.as";

const SPECIAL: i32 = 1 << 30; // flag of ids in addedIds
let matchLength: usize = 0;
export let foundId: i32 = -1;
export let foundEnd: usize = 0;

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
