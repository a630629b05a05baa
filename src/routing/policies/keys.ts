/** Keys that choose workers by hashing. Hashes depend on nothing but their input, so all threads and gateways agree. */
import type { Candidate } from "../policy.ts";
import { weightOf } from "./weight.ts";

/** The published finalizer of MurmurHash3: every bit of the input changes half of those of the output. */
const mixed = (hash: number): number => {
  let h = hash;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
};

/** FNV-1a over UTF-16 units, finalized; 32 bits. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return mixed(hash);
}

/** The same over the first `count` token ids. */
export function hashTokens(ids: Uint32Array, count: number, seed: number): number {
  let hash = 0x811c9dc5 ^ seed;
  const end = Math.min(count, ids.length);
  for (let i = 0; i < end; i++) hash = Math.imul(mixed(hash ^ ids[i]!), 0x01000193);
  return mixed(hash);
}

/** Of workers' addresses: they stay when a worker registers anew, and are the same at every gateway. */
const hashes = new Map<string, number>();
const MOST_HASHES = 16_384;

function hashOf({ url }: Candidate): number {
  let hash = hashes.get(url);
  if (hash === undefined) {
    if (hashes.size >= MOST_HASHES) hashes.clear();
    hashes.set(url, (hash = hashText(url)));
  }
  return hash;
}

/**
 * How far a candidate is from a key; the nearest has it (rendezvous hashing). Every key has an order of workers of its own, so what
 * leaves, joins or is overloaded moves its own keys only, and to all others alike. One of twice the weight gets twice the keys.
 */
export function distance(key: number, candidate: Candidate): number {
  const unit = ((mixed(key ^ hashOf(candidate)) >>> 0) + 0.5) / 0x1_0000_0000;
  return -Math.log(unit) * weightOf(candidate);
}
