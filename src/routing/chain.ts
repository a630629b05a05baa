/**
 * The chain of a prompt: a key for each full block, a hash of all ids up to its end. The root stands for all else that decides whether
 * a block of one prompt is that of another. Gateways of one version make the same keys, and tell each other of them.
 *
 * How ids are hashed the kernel of the index says, in `threads/prefix-kernel/chain.as.ts`; here is all else that a key stands for.
 */
import type { KeyRoom, PrefixKeys, RootKey } from "../threads/prefix-types.ts";
import type { MediaSpan } from "./ask.ts";

/** Changed whenever keys are made in another way; below 256. */
export const CHAIN_VERSION = 2;

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
  foldCodes(codes, key);
}

/** Folds a text's characters into a key: in four lanes, so that a processor works at all of them at once. */
function foldCodes(codes: Uint32Array, key: Int32Array): void {
  let a = P0;
  let b = P1;
  let c = P2;
  let d = P3;
  const end = codes.length;
  let i = 0;
  for (const whole = end - 3; i < whole; i += 4) {
    a = Math.imul(a ^ codes[i]!, P0);
    b = Math.imul(b ^ codes[i + 1]!, P1);
    c = Math.imul(c ^ codes[i + 2]!, P2);
    d = Math.imul(d ^ codes[i + 3]!, P3);
  }
  for (; i < end; i++) a = Math.imul(a ^ codes[i]!, P0);
  let hi = Math.imul(key[0]! ^ a ^ turn(c, 15), P0);
  let lo = Math.imul(key[1]! ^ b ^ turn(d, 13), P1);
  hi ^= hi >>> 15;
  lo ^= lo >>> 14;
  hi = Math.imul((hi + turn(lo, 16) + d) | 0, P2);
  lo = Math.imul(lo ^ turn(hi, 11) ^ c, P3);
  key[0] = hi ^ (hi >>> 16);
  key[1] = lo ^ (lo >>> 15);
}

/** Takes in what media that a block overlaps with show. */
export function chainMedia(out: Int32Array, at: number, hi: number, lo: number): void {
  const [x, y] = [out[at]!, out[at + 1]!];
  out[at] = mixed(mixed(x ^ hi) + turn(y, 11) + lo);
  out[at + 1] = mixed(Math.imul(mixed(y ^ lo), P1) ^ turn(x, 7) ^ hi);
}

/** The keys of all full blocks, into a room of the index; gives how many there are. Media are in the order of their places. */
export function chainInto(
  keys: PrefixKeys,
  room: KeyRoom,
  [hi, lo]: RootKey,
  ids: Uint32Array,
  blockSize: number,
  media: readonly MediaSpan[] = [],
): number {
  const count = Math.floor(ids.length / blockSize);
  if (media.length === 0) {
    keys.hash(ids, 0, count, blockSize, hi, lo, room);
    return count;
  }
  // up to each block that a medium lies in, which is taken in before those behind it
  let from = 0;
  let parent: RootKey = [hi, lo];
  for (let first = 0; from < count; ) {
    while (first < media.length && media[first]!.end <= from * blockSize) first++;
    const shown = media[first];
    const last = shown === undefined ? count - 1 : Math.max(from, Math.floor(shown.start / blockSize));
    const to = Math.min(count, last + 1);
    keys.hash(ids, from * blockSize, to - from, blockSize, parent[0], parent[1], room, from);
    for (let i = first; i < media.length && media[i]!.start < to * blockSize; i++)
      if (media[i]!.end > (to - 1) * blockSize) chainMedia(room.keys, 2 * (to - 1), media[i]!.hi, media[i]!.lo);
    parent = [room.keys[2 * to - 2]!, room.keys[2 * to - 1]!];
    from = to;
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
