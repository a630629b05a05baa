import type { TextBuffer } from "../tokenizer.ts";
import { type CacheBoard, type Found, Level } from "./board.ts";

/**
 * Bytes from one cut that is kept to the next, at least: encoding as much costs about what an entry does. Which cuts are kept
 * depends on the text before them only, so that texts that begin alike keep the same.
 */
const LEAST_SEGMENT = 1024;

/** The known beginnings of a text, from short to long. */
export interface Beginnings {
  readonly found: readonly Found[];
  /** Of all of each beginning: chained from cut to cut. */
  readonly hashes: readonly bigint[];
  /** There was a cut to look up. */
  readonly asked: boolean;
}

export const hashOf = (bytes: Uint8Array, seed: bigint): bigint => Bun.hash.xxHash3(bytes, seed);

/** Looks the beginnings of the buffer's text up, from cut to cut, as long as they are known. `bytes` is the same text. */
export function findBeginnings(board: CacheBoard, buffer: TextBuffer, bytes: Buffer): Beginnings {
  const found: Found[] = [];
  const hashes: bigint[] = [];
  let at = 0;
  let hash = board.seed;
  for (;;) {
    let end = at;
    do end = buffer.nextCut(end);
    while (end >= 0 && end - at < LEAST_SEGMENT);
    if (end < 0) return { found, hashes, asked: found.length > 0 };
    hash = hashOf(bytes.subarray(at, end), hash);
    const beginning = board.find(Level.l1, hash, end);
    if (beginning === undefined) return { found, hashes, asked: true };
    found.push(beginning);
    hashes.push(hash);
    at = end;
  }
}

/**
 * Makes all beginnings of a text known that lie in the new record at `at`: those that were found, and those that end at the cuts behind them.
 * `cuts` are as `encodeFrom` gives them from the end of the last found one on. Gives the number of new ones.
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
    if (board.put(Level.l1, hashes[i]!, { at, length, count })) added++;
  }
  const last = found.at(-1);
  const before = last?.count ?? 0;
  let from = last?.length ?? 0;
  let hash = hashes.at(-1) ?? board.seed;
  for (let i = 0; i < cuts.length; i += 2) {
    const length = cuts[i]!;
    if (length - from < LEAST_SEGMENT) continue;
    hash = hashOf(bytes.subarray(from, length), hash);
    if (board.put(Level.l1, hash, { at, length, count: before + cuts[i + 1]! })) added++;
    from = length;
  }
  return added;
}
