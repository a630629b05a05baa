/**
 * The chain of a prompt: a key for each full block, a hash of all ids up to its end. The root stands for all else that decides whether
 * a block of one prompt is that of another. Gateways of one version make the same keys, and tell each other of them.
 *
 * A block is hashed in four lanes, each of every fourth id, so that a processor works at all of them at once. Nobody is kept from making
 * two prompts of one key: it would only send his own to where they are not.
 */
import type { RootKey } from "../threads/prefix-types.ts";
import type { MediaSpan } from "./ask.ts";

/** Changed whenever keys are made in another way; below 256. */
export const CHAIN_VERSION = 1;

// Odd numbers for each lane, as 32-bit integers.
const P0 = 0x9e3779b1 | 0;
const P1 = 0x85ebca77 | 0;
const P2 = 0xc2b2ae3d | 0;
const P3 = 0x27d4eb2f;

/** The chain's beginning for prompts of a model in blocks of one size. Adapters and salts keep caches apart. */
export function chainRoot(model: string, blockSize: number, lora?: string, cacheSalt?: string): RootKey {
  const key = new Int32Array([CHAIN_VERSION, blockSize]);
  for (const part of [model, lora, cacheSalt]) foldText(key, part);
  return [key[0]!, key[1]!];
}

/** A hash of a text, as chains take in what media show. */
export function textKey(text: string): RootKey {
  const key = new Int32Array([CHAIN_VERSION, 0]);
  foldText(key, text);
  return [key[0]!, key[1]!];
}

function foldText(key: Int32Array, text: string | undefined): void {
  const codes = new Uint32Array(1 + (text?.length ?? 0));
  codes[0] = text === undefined ? 0 : text.length + 1;
  for (let i = 1; i < codes.length; i++) codes[i] = text!.charCodeAt(i - 1);
  chainBlock(key[0]!, key[1]!, codes, 0, codes.length, key);
}

/**
 * The key of a block of `size` ids from `start` on, behind the block with the parent's key; written to `out[at]` and `out[at + 1]`. The
 * ids' hash does not wait for the parent's key, which is taken in at the end.
 */
export function chainBlock(
  parentHi: number,
  parentLo: number,
  ids: Uint32Array,
  start: number,
  size: number,
  out: Int32Array,
  at = 0,
): void {
  let a = P0;
  let b = P1;
  let c = P2;
  let d = P3;
  const end = start + size;
  let i = start;
  for (const whole = end - 3; i < whole; i += 4) {
    a = Math.imul(a ^ ids[i]!, P0);
    b = Math.imul(b ^ ids[i + 1]!, P1);
    c = Math.imul(c ^ ids[i + 2]!, P2);
    d = Math.imul(d ^ ids[i + 3]!, P3);
  }
  for (; i < end; i++) a = Math.imul(a ^ ids[i]!, P0);
  let hi = Math.imul(parentHi ^ a ^ turn(c, 15), P0);
  let lo = Math.imul(parentLo ^ b ^ turn(d, 13), P1);
  hi ^= hi >>> 15;
  lo ^= lo >>> 14;
  hi = Math.imul((hi + turn(lo, 16) + d) | 0, P2);
  lo = Math.imul(lo ^ turn(hi, 11) ^ c, P3);
  out[at] = hi ^ (hi >>> 16);
  out[at + 1] = lo ^ (lo >>> 15);
}

/** Takes in what media that a block overlaps with show. */
export function chainMedia(out: Int32Array, at: number, hi: number, lo: number): void {
  const [x, y] = [out[at]!, out[at + 1]!];
  out[at] = mixed(mixed(x ^ hi) + turn(y, 11) + lo);
  out[at + 1] = mixed(Math.imul(mixed(y ^ lo), P1) ^ turn(x, 7) ^ hi);
}

/** The keys of all full blocks, into `keys`; gives how many there are. Media are in the order of their places. */
export function chainInto(
  keys: Int32Array,
  root: RootKey,
  ids: Uint32Array,
  blockSize: number,
  media?: readonly MediaSpan[],
): number {
  let [hi, lo] = root;
  const count = Math.floor(ids.length / blockSize);
  let first = 0;
  for (let block = 0, at = 0; block < count; block++, at += 2) {
    const start = block * blockSize;
    chainBlock(hi, lo, ids, start, blockSize, keys, at);
    if (media !== undefined) {
      const end = start + blockSize;
      while (first < media.length && media[first]!.end <= start) first++;
      for (let i = first; i < media.length && media[i]!.start < end; i++)
        chainMedia(keys, at, media[i]!.hi, media[i]!.lo);
    }
    hi = keys[at]!;
    lo = keys[at + 1]!;
  }
  return count;
}

const turn = (word: number, bits: number): number => (word << bits) | (word >>> (32 - bits));

/** Spreads every bit of a word over all. */
function mixed(word: number): number {
  let x = Math.imul(word ^ (word >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return x ^ (x >>> 16);
}
