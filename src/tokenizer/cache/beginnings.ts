import type { TextBuffer } from "../tokenizer.ts";
import { type CacheBoard, type Found, Level } from "./board.ts";
import { bigOf, type Halves, hashOf } from "./hash.ts";

/**
 * Bytes from one cut that counts to the next, at least: a chat that grows encodes half as much again on average, some 10 us. Which
 * cuts count depends on the text before them only, so that texts that begin alike have the same.
 */
export const LEAST_SEGMENT = 3072;

/** The cuts of a text that count, as far as they were looked up: up to the last, or only the first if that one is not known. */
export interface Beginnings {
  /** Hash of what all of them begin with, `LEAST_SEGMENT` bytes. */
  readonly start: Halves;
  readonly ends: readonly number[];
  /** What is known, by the number of the cut. */
  readonly found: readonly (Found | undefined)[];
  /** The longest that is known; one of `found`. */
  readonly last: Found | undefined;
}

/** Bytes of a beginning's end that its hash is of. */
const SAMPLE = 2048;

/**
 * Of the beginning that ends at `end`: of its start and its end, as the whole text is compared anyhow before its ids are used. Texts of
 * one length that differ between the two meet.
 */
const hashAt = (bytes: Uint8Array, end: number, start: bigint): bigint =>
  hashOf(bytes.subarray(end - SAMPLE, end), start);

/** Can a text of so many bytes have a beginning that is kept? */
export const hasBeginnings = (length: number): boolean => length >= LEAST_SEGMENT;

/**
 * Of the cuts of a text that is seen for the first time the 1st, 4th, 16th … are kept, and the last: each costs some 0.5 us. A chat
 * that has grown has them all, because each was the last one once.
 */
const isKept = (number: number): boolean => (number & (number - 1)) === 0 && (number & 0x55555555) !== 0;

/** Looks up a text's beginnings, if another that starts alike is known. `bytes` are those that were written to `buffer`. */
export function findBeginnings(board: CacheBoard, buffer: TextBuffer, bytes: Uint8Array, start: Halves): Beginnings {
  const ends: number[] = [];
  const found: (Found | undefined)[] = [];
  let last: Found | undefined;
  if (!board.knows(start)) return { start, ends, found, last };
  const seed = bigOf(start);
  let from = 0;
  do {
    let end = from;
    do end = buffer.nextCut(end);
    while (end >= 0 && end - from < LEAST_SEGMENT);
    if (end < 0) break;
    const beginning = board.find(Level.l1, hashAt(bytes, end, seed), end);
    ends.push(end);
    found.push(beginning);
    last = beginning ?? last;
    from = end;
  } while (last !== undefined);
  return { start, ends, found, last };
}

/** The same beginnings, as far as they are known to be shorter than the last one: that had the hash of another text. */
export function shorter(known: Beginnings): Beginnings {
  const found = known.found.slice(0, known.found.lastIndexOf(known.last));
  return { ...known, found, last: found.findLast((each) => each !== undefined) };
}

/** The same beginnings, none of them known. */
export const unknown = (known: Beginnings): Beginnings => ({ ...known, found: [], last: undefined });

/**
 * Makes beginnings of a text known that lie in the new record at `at`: of those that were found, and of those that end at the cuts
 * behind the last found one, which are as `encodeFrom` gives them from there on. Gives the number of new ones.
 */
export function putBeginnings(
  board: CacheBoard,
  at: number,
  bytes: Uint8Array,
  { start, ends, found, last }: Beginnings,
  cuts: Uint32Array,
): number {
  let added = 0;
  const seed = bigOf(start);
  const put = (end: number, count: number): void => {
    if (board.put(Level.l1, hashAt(bytes, end, seed), at, end, count)) added++;
  };
  let number = 0;
  let from = 0;
  while (from < (last?.length ?? 0)) {
    const known = found[number];
    from = ends[number++]!;
    if (known && (isKept(number) || known === last)) put(from, known.count);
  }
  const before = last?.count ?? 0;
  let count = -1; // of the beginning that the loop came to before
  for (let i = 0; i < cuts.length; i += 2) {
    const end = cuts[i]!;
    if (end - from < LEAST_SEGMENT) continue;
    if (count >= 0 && isKept(number)) put(from, count);
    from = end;
    count = before + cuts[i + 1]!;
    number++;
  }
  if (count >= 0) put(from, count);
  if (from > 0) board.note(start);
  return added;
}
