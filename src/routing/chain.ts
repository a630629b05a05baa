/**
 * The chain of a prompt: a key for each full block, a hash of all ids up to its end. The root stands for all else that decides whether
 * a block of one prompt is that of another. Gateways of one version make the same keys, and tell each other of them.
 *
 * A block is hashed in four lanes, each of every fourth id, so that a processor works at all of them at once.
 */
import type { RootKey } from "../threads/prefix-types.ts";
import type { MediaSpan } from "./ask.ts";

/** Changed whenever keys are made in another way; below 256. */
export const CHAIN_VERSION = 1;

const PRIMES = [0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f] as const;
const [P0, P1, P2, P3] = PRIMES;

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

/** The key of a block of `size` ids from `start` on, behind the block with the parent's key; written to `out[at]` and `out[at + 1]`. */
export function chainBlock(
  parentHi: number,
  parentLo: number,
  ids: Uint32Array,
  start: number,
  size: number,
  out: Int32Array,
  at = 0,
): void {
  let a = parentHi ^ P0;
  let b = parentLo ^ P1;
  let c = turn(parentHi, 16) ^ P2;
  let d = turn(parentLo, 16) ^ P3;
  const end = start + size;
  let i = start;
  for (const whole = end - 3; i < whole; i += 4) {
    a = Math.imul(a ^ ids[i]!, P0);
    b = Math.imul(b ^ ids[i + 1]!, P1);
    c = Math.imul(c ^ ids[i + 2]!, P2);
    d = Math.imul(d ^ ids[i + 3]!, P3);
  }
  for (; i < end; i++) a = mixed(Math.imul(a ^ ids[i]!, P0));
  const x = mixed(a ^ turn(c, 15)) + size;
  const y = mixed(b ^ turn(d, 13));
  out[at] = mixed(x ^ turn(y, 17) ^ Math.imul(d, P2));
  out[at + 1] = mixed(Math.imul(y, P3) + turn(x, 9) + Math.imul(c, P1));
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
