import type { TextBuffer } from "../tokenizer.ts";
import { type CacheBoard, type Found, Level } from "./board.ts";

/**
 * Bytes from one cut that is kept to the next, at least: a chat that grows encodes half as much again on average, some 10 us, and a
 * new one pays 0.3 us for each. Which cuts are kept depends on the text before them only, so that texts that begin alike keep the same.
 */
const LEAST_SEGMENT = 3072;
/** So much of a text is looked up before cuts are searched for: most texts that nobody has seen differ in it. */
const HEAD = 1024;

/** The known beginnings of a text, from short to long. */
export interface Beginnings {
  readonly found: readonly Found[];
  /** Of all of each beginning: chained from cut to cut. */
  readonly hashes: readonly bigint[];
}

export const NO_BEGINNINGS: Beginnings = { found: [], hashes: [] };

export const hashOf = (bytes: Uint8Array, seed: bigint): bigint => Bun.hash.xxHash3(bytes, seed);

/** Can a text of so many bytes have a beginning that is kept? */
export const hasBeginnings = (length: number): boolean => length >= LEAST_SEGMENT;

const headHash = (board: CacheBoard, bytes: Buffer): bigint => hashOf(bytes.subarray(0, HEAD), board.seed);

/** Looks up a text's beginnings, from cut to cut, as long as they are known. `bytes` are those of the text. */
export function findBeginnings(board: CacheBoard, buffer: TextBuffer, text: string, bytes: Buffer): Beginnings {
  let hash = headHash(board, bytes);
  if (board.find(Level.l1, hash, HEAD) === undefined) return NO_BEGINNINGS;
  buffer.write(text);
  const found: Found[] = [];
  const hashes: bigint[] = [];
  let from = 0;
  for (;;) {
    let end = from;
    do end = buffer.nextCut(end);
    while (end >= 0 && end - from < LEAST_SEGMENT);
    if (end < 0) break;
    hash = hashOf(bytes.subarray(from, end), hash);
    const beginning = board.find(Level.l1, hash, end);
    if (beginning === undefined) break;
    found.push(beginning);
    hashes.push(hash);
    from = end;
  }
  return { found, hashes };
}

/**
 * Makes all beginnings of a text known that lie in the new record at `at`: those that were found, and those that end at the cuts
 * behind them, which are as `encodeFrom` gives them from the end of the last found one on. Gives the number of new ones.
 */
export function putBeginnings(
  board: CacheBoard,
  at: number,
  bytes: Buffer,
  { found, hashes }: Beginnings,
  cuts: Uint32Array,
): number {
  let added = 0;
  for (const [i, { length, count }] of found.entries()) {
    if (board.put(Level.l1, hashes[i]!, at, length, count)) added++;
  }
  const last = found.at(-1);
  const before = last?.count ?? 0;
  const head = headHash(board, bytes);
  let from = last?.length ?? 0;
  let hash = hashes.at(-1) ?? head;
  for (let i = 0; i < cuts.length; i += 2) {
    const length = cuts[i]!;
    if (length - from < LEAST_SEGMENT) continue;
    hash = hashOf(bytes.subarray(from, length), hash);
    if (board.put(Level.l1, hash, at, length, before + cuts[i + 1]!)) added++;
    from = length;
  }
  if (from > 0 && board.put(Level.l1, head, at, HEAD, 0)) added++;
  return added;
}
