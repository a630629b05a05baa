/** What tells one file's content from another's in the key of built tables. */
import { closeSync, openSync, readSync } from "node:fs";

/**
 * Bytes that are read and hashed at a time: they stay in the processor's cache, and no memory for the whole file has to be had, which
 * would take three times as long as the hashes.
 */
export const PIECE = 1 << 18;

/** The length and two fast hashes of a content, as text; SHA-256 of a file of 30 MB would take most of a start. */
export type ContentHash = string;

function hasher(): { add(piece: Uint8Array): void; result(): ContentHash } {
  let size = 0;
  let one = 0n;
  let two = 0n;
  return {
    /** Each piece is hashed from where the one before it left off; all but the last have `PIECE` bytes. */
    add(piece) {
      size += piece.length;
      one = Bun.hash.xxHash3(piece, one);
      two = Bun.hash.wyhash(piece, two);
    },
    result: () => `${size} ${one.toString(16)} ${two.toString(16)}`,
  };
}

export function hashOfBytes(bytes: Uint8Array): ContentHash {
  const hash = hasher();
  for (let at = 0; at < bytes.length; at += PIECE) hash.add(bytes.subarray(at, at + PIECE));
  return hash.result();
}

/** The same of a file's bytes as they are now. Throws what the system says. */
export function hashOfFile(path: string): ContentHash {
  const hash = hasher();
  const piece = Buffer.allocUnsafeSlow(PIECE);
  const file = openSync(path, "r");
  try {
    for (;;) {
      const length = fillFrom(file, piece);
      if (length > 0) hash.add(piece.subarray(0, length));
      if (length < PIECE) return hash.result();
    }
  } finally {
    closeSync(file);
  }
}

/** Reads on until the buffer is full or the file ends; gives the bytes read. */
function fillFrom(file: number, into: Buffer): number {
  let at = 0;
  for (let n = -1; n !== 0 && at < into.length; at += n) n = readSync(file, into, at, into.length - at, null);
  return at;
}
