/**
 * Several files in one, each compressed by itself with zstd:
 *   u32 count, then per file: u32 name bytes, u32 file bytes, u32 compressed bytes, name (UTF-8), compressed data
 * (little endian).
 */
import { TokenizerError } from "./tokenizer.ts";

const utf8 = new TextEncoder();

/** One bundle of the files. `level` is zstd's, 1 to 22. */
export function packFiles(files: ReadonlyMap<string, Uint8Array>, level: number): Uint8Array {
  const parts: Uint8Array[] = [words(files.size)];
  for (const [name, bytes] of files) {
    const key = utf8.encode(name);
    const packed = Bun.zstdCompressSync(bytes as Uint8Array<ArrayBuffer>, { level });
    parts.push(words(key.length, bytes.length, packed.length), key, packed);
  }
  return Buffer.concat(parts);
}

/** The files of a bundle. Throws `TokenizerError` if it is damaged. */
export function unpackFiles(bundle: Uint8Array<ArrayBuffer>): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  const view = Buffer.from(bundle.buffer, bundle.byteOffset, bundle.byteLength);
  try {
    let at = 4;
    for (let left = view.readUInt32LE(0); left > 0; left--) {
      const [nameLength, size, packed] = [view.readUInt32LE(at), view.readUInt32LE(at + 4), view.readUInt32LE(at + 8)];
      const name = view.toString("utf8", at + 12, at + 12 + nameLength);
      at += 12 + nameLength;
      const bytes = Bun.zstdDecompressSync(bundle.subarray(at, at + packed));
      if (bytes.length !== size) throw new Error(name);
      files.set(name, bytes);
      at += packed;
    }
  } catch (error) {
    throw new TokenizerError(
      `the bundle of model files is damaged: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  return files;
}

const words = (...values: number[]): Uint8Array => new Uint8Array(Uint32Array.from(values).buffer);
