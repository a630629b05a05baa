/** Encoding a word by looking for tokens that fit each other, instead of merging. */
import { findPair, pairRank, tokenAt } from "./lookup.as";
import { byteIds, NONE, scratch, setResult, splits } from "./state.as";

/**
 * May token b stand right of token a? Undo the younger of the two again and again; no merge across the border may have been due
 * before that moment.
 */
function fits(a: u32, b: u32): bool {
  let before = NONE;
  while (true) {
    const pair = findPair(a, b);
    if (pair && pairRank(pair) < before) return false;
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
export function search(s: usize, len: i32): i32 {
  const T = scratch, L = scratch + 256;
  setResult(T);
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
