/**
 * Keys of blocks. The ids of a block are hashed by themselves in four lanes, many blocks at once, and then taken into the key of the block
 * before, which costs a chain of blocks a few nanoseconds for each. Nobody is kept from making two prompts of one key: it would only
 * send his own to where they are not.
 */

const K0: u64 = 0x9e3779b97f4a7c15;
const K1: u64 = 0xc2b2ae3d27d4eb4f;

@inline
function start(): v128 {
  return i32x4(0x243f6a88, 0x05a308d3, 0x13198a2e, 0x03707344);
}

@inline
function mix(lanes: v128, ids: v128): v128 {
  return i32x4.mul(v128.xor(lanes, ids), i32x4(<i32>0x9e3779b1, <i32>0x85ebca77, <i32>0xc2b2ae3d, 0x27d4eb2f));
}

/** The lanes in one word. */
@inline
function fold(lanes: v128): u64 {
  const x = (<u64>i64x2.extract_lane(lanes, 0) ^ (<u64>i64x2.extract_lane(lanes, 1) * K1)) * K0;
  return x ^ (x >> 32);
}

@inline
function follow(parent: u64, block: u64): u64 {
  return (parent ^ block) * K1;
}

/** The keys of `count` blocks of `size` ids behind that of a parent, to `keys`. 12 bytes behind the last id are readable. */
export function hash(ids: usize, count: u32, size: u32, parentLow: u32, parentHigh: u32, keys: usize): void {
  let key = (<u64>parentHigh << 32) | <u64>parentLow;
  const end = keys + (<usize>count << 3);
  if (size == 16) {
    for (; keys < end; keys += 8, ids += 64) {
      const a = mix(mix(mix(mix(start(), v128.load(ids)), v128.load(ids, 16)), v128.load(ids, 32)), v128.load(ids, 48));
      key = follow(key, fold(a));
      store<u64>(keys, key);
    }
    return;
  }
  const whole = <usize>(size & ~3) << 2;
  const rest = size & 3;
  // what is behind a block's last id is not its own
  const own = i32x4(-1, rest > 1 ? -1 : 0, rest > 2 ? -1 : 0, 0);
  for (; keys < end; keys += 8) {
    let lanes = start();
    for (const stop = ids + whole; ids < stop; ids += 16) lanes = mix(lanes, v128.load(ids));
    if (rest) lanes = mix(lanes, v128.and(v128.load(ids), own));
    ids += <usize>rest << 2;
    key = follow(key, fold(lanes));
    store<u64>(keys, key);
  }
}
