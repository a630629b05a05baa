/** Odd, so that hashes stay distinct when they are spread over 64 bits, negative ones included. */
const HASH_SPREAD = 0x9e3779b97f4a7c15n;

/** A block's hash as events tell it: a signed 64-bit number. */
export function wireHash(hash: number): bigint {
  return BigInt.asIntN(64, BigInt(hash) * HASH_SPREAD);
}
