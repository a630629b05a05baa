import type { TextBuffer } from "../tokenizer.ts";
import { type CacheBoard, type Found, Level } from "./board.ts";

/**
 * Bytes from one cut that counts to the next, at least: a chat that grows encodes half as much again on average, some 10 us. Which
 * cuts count depends on the text before them only, so that texts that begin alike have the same.
 */
const LEAST_SEGMENT = 3072;

/** The cuts of a text that count, as far as they were looked up: up to the last, or only the first if that one is not known. */
export interface Beginnings {
  readonly ends: readonly number[];
  /** Of all of each beginning: chained from cut to cut. */
  readonly hashes: readonly bigint[];
  /** What is known, by the number of the cut. */
  readonly found: readonly (Found | undefined)[];
  /** The longest that is known; one of `found`. */
  readonly last: Found | undefined;
}

/** Bytes of a long segment's start, middle and end that its hash is of: its text is compared anyhow before its ids are used. */
const SAMPLE = 1024;

export const hashOf = (bytes: Uint8Array, seed: bigint): bigint => Bun.hash.xxHash3(bytes, seed);

/** Of the bytes from one cut to the next, chained to `before`. Texts of one length that differ elsewhere than in the samples meet. */
function segmentHash(bytes: Uint8Array, from: number, end: number, before: bigint): bigint {
  if (end - from <= 4 * SAMPLE) return hashOf(bytes.subarray(from, end), before);
  const middle = from + ((end - from - SAMPLE) >> 1);
  let hash = hashOf(bytes.subarray(from, from + SAMPLE), before);
  hash = hashOf(bytes.subarray(middle, middle + SAMPLE), hash);
  return hashOf(bytes.subarray(end - SAMPLE, end), hash);
}

/** Can a text of so many bytes have a beginning that is kept? */
export const hasBeginnings = (length: number): boolean => length >= LEAST_SEGMENT;

/**
 * Of the cuts of a text that is seen for the first time the 1st, 4th, 16th … are kept, and the last: each costs some 0.5 us. A chat
 * that has grown has them all, because each was the last one once.
 */
const isKept = (number: number): boolean => (number & (number - 1)) === 0 && (number & 0x55555555) !== 0;

/** Looks up a text's beginnings, if the shortest is known. `bytes` are those that were written to `buffer`. */
export function findBeginnings(board: CacheBoard, buffer: TextBuffer, bytes: Uint8Array): Beginnings {
  const ends: number[] = [];
  const hashes: bigint[] = [];
  const found: (Found | undefined)[] = [];
  let last: Found | undefined;
  let hash = board.seed;
  let from = 0;
  do {
    let end = from;
    do end = buffer.nextCut(end);
    while (end >= 0 && end - from < LEAST_SEGMENT);
    if (end < 0) break;
    hash = segmentHash(bytes, from, end, hash);
    const beginning = board.find(Level.l1, hash, end);
    ends.push(end);
    hashes.push(hash);
    found.push(beginning);
    last = beginning ?? last;
    from = end;
  } while (last !== undefined);
  return { ends, hashes, found, last };
}

/** The same beginnings, as far as they are known to be shorter than the last one: that had the hash of another text. */
export function shorter({ ends, hashes, found, last }: Beginnings): Beginnings {
  const rest = found.slice(0, found.lastIndexOf(last));
  return { ends, hashes, found: rest, last: rest.findLast((each) => each !== undefined) };
}

/** The same beginnings, none of them known. */
export const unknown = ({ ends, hashes }: Beginnings): Beginnings => ({ ends, hashes, found: [], last: undefined });

/**
 * Makes beginnings of a text known that lie in the new record at `at`: of those that were found, and of those that end at the cuts
 * behind the last found one, which are as `encodeFrom` gives them from there on. Gives the number of new ones.
 */
export function putBeginnings(
  board: CacheBoard,
  at: number,
  bytes: Uint8Array,
  { ends, hashes, found, last }: Beginnings,
  cuts: Uint32Array,
): number {
  let added = 0;
  let index = 0;
  let from = 0;
  let hash = board.seed;
  for (; from < (last?.length ?? 0); index++) {
    const known = found[index];
    from = ends[index]!;
    hash = hashes[index]!;
    if (known && (isKept(index + 1) || known === last) && board.put(Level.l1, hash, at, from, known.count)) added++;
  }
  const before = last?.count ?? 0;
  let count = -1; // of the beginning that the loop came to before
  for (let i = 0; i < cuts.length; i += 2) {
    const end = cuts[i]!;
    if (end - from < LEAST_SEGMENT) continue;
    if (count >= 0 && isKept(index) && board.put(Level.l1, hash, at, from, count)) added++;
    hash = ends[index] === end ? hashes[index]! : segmentHash(bytes, from, end, hash);
    from = end;
    count = before + cuts[i + 1]!;
    index++;
  }
  if (count >= 0 && board.put(Level.l1, hash, at, from, count)) added++;
  return added;
}
