/** Tokens by their bytes and merges by their parts. */
import {
  hotPairs, hotSlots, K0, K1, medium, mediumSlots, pairFilter, pairs, pairSlots, short, shortSlots, tokenBytes,
  tokenFilter, tokenOffsets,
} from "./state.as";

@inline
export function hash8(key: u64): u32 {
  return <u32>((key * K0) >> 32);
}

@inline
export function hash16(k0: u64, k1: u64): u32 {
  return <u32>((k0 * K0 + k1 * K1) >> 32);
}

/** Hash of any number of bytes. */
export function hashLong(s: usize, len: i32): u32 {
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

export function same(a: usize, b: usize, len: i32): bool {
  const e = a + <usize>len;
  for (; a + 8 <= e; a += 8, b += 8) if (load<u64>(a) != load<u64>(b)) return false;
  for (; a < e; a++, b++) if (load<u8>(a) != load<u8>(b)) return false;
  return true;
}

export function findTokenBy(h: u32, table: usize, mask: u32, s: usize, len: i32): i32 {
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

@inline
function tokenBit(h: u32, len: i32): u32 {
  return (h + <u32>len * 0x9e3779b1) >> 11;
}

export function setTokenBit(h: u32, len: i32): void {
  const g = tokenBit(h, len);
  const at = tokenFilter + (<usize>(g >> 5) << 2);
  store<u32>(at, load<u32>(at) | (1 << (g & 31)));
}

@inline
function hasTokenBit(h: u32, len: i32): u32 {
  const g = tokenBit(h, len);
  return (load<u32>(tokenFilter + (<usize>(g >> 5) << 2)) >> (g & 31)) & 1;
}

/** Token of exactly these 2 to 16 bytes, or -1. */
@inline
export function tokenAt(s: usize, len: i32): i32 {
  if (len <= 8) {
    const key = load<u64>(s) << (64 - (<u64>len << 3));
    const h = hash8(key);
    return hasTokenBit(h, len) ? shortToken(key, h, len) : -1;
  }
  const k0 = load<u64>(s), k1 = load<u64>(s + <usize>len - 8);
  const h = hash16(k0, k1);
  return hasTokenBit(h, len) ? mediumToken(k0, k1, h, len) : -1;
}

export function shortToken(key: u64, h: u32, len: i32): i32 {
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

/** Address of the merge (x, y) in `pairs`, or 0. */
@inline
export function findPair(x: u32, y: u32): usize {
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
