/** Blocks of prompts by the hashes that the simulated engines have for them. */
import { chainHash, ROOT_HASH } from "../../src/simulator/core/kv-cache.ts";
import type { ChainKeys } from "../../src/threads/prefix-types.ts";

/** Of all full blocks. */
export function blockHashes(ids: Uint32Array, blockSize: number): number[] {
  const hashes: number[] = [];
  let hash = ROOT_HASH;
  for (let at = 0; at + blockSize <= ids.length; at += blockSize)
    hashes.push((hash = chainHash(hash, ids, at, at + blockSize)));
  return hashes;
}

/** The hashes in two words each, as policies see the keys of an index. */
export function keysOf(hashes: readonly number[], blockSize: number): ChainKeys {
  const keys = new Int32Array(2 * hashes.length);
  for (const [i, hash] of hashes.entries()) {
    keys[2 * i] = hash / 0x1_0000_0000;
    keys[2 * i + 1] = hash | 0;
  }
  return { keys, count: hashes.length, blockSize };
}
