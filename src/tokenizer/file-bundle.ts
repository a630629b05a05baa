/**
 * Several files in one, each compressed by itself with zstd, so that one can be read without the others:
 *   u32 index bytes (little endian), index, compressed data in the order of the index
 * The index is JSON: a list of { name, size, packed }, with the bytes of a file and of its compressed data.
 */
import { isObject } from "./image/tokenizer-json.ts";
import { TokenizerError } from "./tokenizer.ts";

interface Entry {
  readonly name: string;
  readonly size: number;
  readonly packed: number;
}

/** One bundle of the files. `level` is zstd's, 1 to 22. */
export function packFiles(files: ReadonlyMap<string, Uint8Array>, level: number): Uint8Array {
  const index: Entry[] = [];
  const data: Uint8Array[] = [];
  for (const [name, bytes] of files) {
    const packed = Bun.zstdCompressSync(bytes as Uint8Array<ArrayBuffer>, { level });
    index.push({ name, size: bytes.length, packed: packed.length });
    data.push(packed);
  }
  const text = Buffer.from(JSON.stringify(index));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  return Buffer.concat([length, text, ...data]);
}

export interface FileBundle {
  readonly names: readonly string[];
  /** A file's bytes. Throws `TokenizerError` if there is none of this name, or it is damaged. */
  read(name: string): Promise<Uint8Array>;
}

/** Opens a bundle; only its index is read. Throws `TokenizerError` if it is damaged. */
export async function openBundle(blob: Blob): Promise<FileBundle> {
  const part = async (from: number, to: number): Promise<Buffer<ArrayBuffer>> => {
    if (to > blob.size) throw damaged();
    return Buffer.from(await blob.slice(from, to).arrayBuffer());
  };
  const start = 4 + (await part(0, 4)).readUInt32LE(0);
  const index = parseIndex(await part(4, start));
  return {
    names: index.map(({ name }) => name),
    async read(name) {
      let at = start;
      for (const entry of index) {
        if (entry.name === name) return unpack(await part(at, at + entry.packed), entry.size);
        at += entry.packed;
      }
      throw new TokenizerError(`the bundle of model files has no ${name}`);
    },
  };
}

function parseIndex(bytes: Uint8Array): Entry[] {
  let index: unknown;
  try {
    index = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw damaged();
  }
  const isEntry = (e: unknown): e is Entry =>
    isObject(e) && typeof e["name"] === "string" && Number.isInteger(e["size"]) && Number.isInteger(e["packed"]);
  if (!Array.isArray(index) || !index.every(isEntry)) throw damaged();
  return index;
}

function unpack(packed: Uint8Array<ArrayBuffer>, size: number): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = Bun.zstdDecompressSync(packed);
  } catch {
    throw damaged();
  }
  if (bytes.length !== size) throw damaged();
  return bytes;
}

const damaged = (): TokenizerError => new TokenizerError("the bundle of model files is damaged");
