import { createHash } from "node:crypto";
import { zipSync } from "fflate";

/** A deflate zip of files under flat names, with its SHA-256 in hex. */
export interface TokenizerZip {
  readonly bytes: Uint8Array;
  readonly sha256: string;
}

/** Packs a tokenizer bundle as the engines do. */
export function packBundle(files: ReadonlyMap<string, Uint8Array>): TokenizerZip {
  const bytes = zipSync(Object.fromEntries(files), { level: 1 });
  return { bytes, sha256: createHash("sha256").update(bytes).digest("hex") };
}

/** Pieces of a zip in order. */
export function* pieces(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
