/**
 * Built tables on disk. A file holds a header of 64 bytes, then a description in JSON, then the tables:
 *   u32 magic, u32 format version, u32 bytes of tables, u32 bytes of description, u64 hash of the tables, u64 xxHash3 of the
 *   description, 32 bytes key
 * (little endian). The tables are hashed in pieces while they are read: xxHash3, whose seed is the hash of the piece before. The key stands for everything that the tables are made from. A file that does not fit is as good as none.
 */
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { type ContentHash, PIECE } from "./content-hash.ts";
import { GENERAL_VERSION } from "./general/memory.ts";
import { IMAGE_VERSION, MAGIC, Word } from "./image/header.ts";
import { IMAGE_AT, imageMemory, kernelHash } from "./kernel/kernel.ts";
import type { PostProcessor } from "./tokenizer.ts";

/** Tables in shared memory, with all that a handle needs besides. */
export type BuiltTables = { readonly postProcessor: PostProcessor } & (
  | { readonly kind: "kernel"; readonly memory: WebAssembly.Memory }
  | { readonly kind: "general"; readonly memory: SharedArrayBuffer }
);

const FILE_MAGIC = 0x54_4c_4f_44;
const HEADER = 64;
const KEY_AT = 32;
/** A description is a handful of ids. */
const MOST_DESCRIPTION = 1 << 20;
const MOST_TABLES = 1 << 30;
/** A file takes milliseconds to write. */
const ABANDONED_MS = 3_600_000;
/** Files kept in a cache folder, the newest ones. */
const KEPT = 32;
/** Raise it when the tables made from the same files change without the layout of images changing. */
const BUILD_VERSION = 1;

/** Key of the tables made from these contents. The kernel counts, which fills them, and the engine, whose Unicode tables NFC follows. */
export function tableKey(contents: readonly (readonly [string, ContentHash])[]): Buffer {
  const sha = new Bun.CryptoHasher("sha256");
  sha.update(`${IMAGE_VERSION} ${GENERAL_VERSION} ${BUILD_VERSION} ${kernelHash()} ${Bun.version}\n`);
  for (const [name, hash] of contents) sha.update(`${name} ${hash}\n`);
  return sha.digest();
}

const SUFFIX = ".image";

/** Name of a file of tables, in the cache folder and among the files of a binary. */
export const tableFileName = (key: Buffer): string => `tokenizer-${key.toString("hex")}${SUFFIX}`;

/** The stored tables of this key, or undefined if there are none that are whole. */
export function readTables(cacheDir: string, key: Buffer): BuiltTables | undefined {
  let file: number | undefined;
  try {
    file = openSync(join(cacheDir, tableFileName(key)), "r");
    const from = file;
    return openTables(key, (into, at) => fill(from, into, at));
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** The tables that a whole file's bytes hold, as `readTables`. */
export function tablesOfBytes(bytes: Uint8Array, key: Buffer): BuiltTables | undefined {
  return openTables(key, (into, at) => {
    if (at + into.length > bytes.length) return false;
    into.set(bytes.subarray(at, at + into.length));
    return true;
  });
}

/** `read` fills a buffer from an offset of the file; false if the file is too short. */
function openTables(key: Buffer, read: (into: Uint8Array, at: number) => boolean): BuiltTables | undefined {
  const header = Buffer.alloc(HEADER);
  if (!read(header, 0)) return undefined;
  const fits = header.readUInt32LE(0) === FILE_MAGIC && header.readUInt32LE(4) === IMAGE_VERSION;
  if (!fits || !header.subarray(KEY_AT).equals(key)) return undefined;
  const [size, words] = [header.readUInt32LE(8), header.readUInt32LE(12)];
  if (size < HEADER || size > MOST_TABLES || words > MOST_DESCRIPTION) return undefined;
  const text = Buffer.alloc(words);
  if (!read(text, HEADER) || Bun.hash.xxHash3(text) !== header.readBigUInt64LE(24)) return undefined;
  const { kind, postProcessor } = JSON.parse(text.toString()) as Description;
  const tables: BuiltTables =
    kind === "kernel"
      ? { kind, postProcessor, memory: imageMemory(size) }
      : { kind, postProcessor, memory: new SharedArrayBuffer(size) };
  const body = bodyOf(tables, size);
  let hash = 0n;
  for (let at = 0; at < size; at += PIECE) {
    const piece = body.subarray(at, at + PIECE);
    if (!read(piece, HEADER + words + at)) return undefined;
    hash = Bun.hash.xxHash3(piece, hash);
  }
  return hash === header.readBigUInt64LE(16) ? tables : undefined;
}

function tableHash(body: Uint8Array): bigint {
  let hash = 0n;
  for (let at = 0; at < body.length; at += PIECE) hash = Bun.hash.xxHash3(body.subarray(at, at + PIECE), hash);
  return hash;
}

type Description = Pick<BuiltTables, "kind" | "postProcessor">;

function bodyOf({ kind, memory }: BuiltTables, size: number): Uint8Array {
  return kind === "kernel" ? new Uint8Array(memory.buffer, IMAGE_AT, size) : new Uint8Array(memory);
}

function sizeOf({ kind, memory }: BuiltTables): number {
  if (kind === "general") return memory.byteLength;
  const words = new Uint32Array(memory.buffer, IMAGE_AT, HEADER);
  if (words[Word.magic] !== MAGIC) throw new RangeError("not a table image");
  return words[Word.size]!;
}

function fill(file: number, into: Uint8Array, from: number): boolean {
  for (let at = 0; at < into.length; ) {
    const n = readSync(file, into, at, into.length - at, from + at);
    if (n === 0) return false;
    at += n;
  }
  return true;
}

/** Tables as the bytes of a file, in parts. */
export function tableParts(tables: BuiltTables, key: Buffer): [header: Buffer, description: Buffer, body: Uint8Array] {
  const { kind, postProcessor } = tables;
  const body = bodyOf(tables, sizeOf(tables));
  const text = Buffer.from(JSON.stringify({ kind, postProcessor } satisfies Description));
  const header = Buffer.alloc(HEADER);
  header.writeUInt32LE(FILE_MAGIC, 0);
  header.writeUInt32LE(IMAGE_VERSION, 4);
  header.writeUInt32LE(body.length, 8);
  header.writeUInt32LE(text.length, 12);
  header.writeBigUInt64LE(tableHash(body), 16);
  header.writeBigUInt64LE(Bun.hash.xxHash3(text), 24);
  key.copy(header, KEY_AT);
  return [header, text, body];
}

/**
 * Stores tables, and removes the oldest files when there are many: versions that are gone leave theirs behind. A folder that can't
 * be written only costs time at the next start: false then.
 */
export function writeTables(cacheDir: string, key: Buffer, tables: BuiltTables): boolean {
  const path = join(cacheDir, tableFileName(key));
  const temporary = `${path}.${process.pid}.${crypto.randomUUID().slice(0, 8)}`;
  try {
    mkdirSync(cacheDir, { recursive: true });
    const file = openSync(temporary, "wx", 0o600);
    try {
      for (const part of tableParts(tables, key)) {
        for (let at = 0; at < part.length; ) at += writeSync(file, part, at, part.length - at);
      }
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
    for (const old of oldFiles(cacheDir)) removeIfThere(old);
    return true;
  } catch {
    removeIfThere(temporary);
    return false;
  }
}

/** Files of tables beyond the newest, those of other versions, and what a writer left that was killed an hour ago or more. */
function oldFiles(cacheDir: string): string[] {
  const files = readdirSync(cacheDir)
    .filter((name) => name.startsWith("tokenizer-") && name.endsWith(SUFFIX))
    .map((name) => join(cacheDir, name))
    .map((path) => ({ path, time: statSync(path).mtimeMs, current: isCurrent(path) }));
  files.sort((a, b) => b.time - a.time);
  const old = files.filter(({ current }, i) => !current || i >= KEPT).map(({ path }) => path);
  return [...old, ...abandonedFiles(cacheDir)];
}

function abandonedFiles(cacheDir: string): string[] {
  return readdirSync(cacheDir)
    .filter((name) => name.startsWith("tokenizer-") && name.includes(`${SUFFIX}.`))
    .map((name) => join(cacheDir, name))
    .filter((path) => Date.now() - statSync(path).mtimeMs > ABANDONED_MS);
}

function isCurrent(path: string): boolean {
  const header = Buffer.alloc(8);
  const file = openSync(path, "r");
  try {
    return fill(file, header, 0) && header.readUInt32LE(0) === FILE_MAGIC && header.readUInt32LE(4) === IMAGE_VERSION;
  } finally {
    closeSync(file);
  }
}

export function removeIfThere(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // what could not be made need not be removed
  }
}
