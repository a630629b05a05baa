/**
 * Built table images on disk. A file holds a header of 64 bytes, then the image:
 *   u32 magic, u32 format version, u32 image bytes, u32 0, u64 xxHash3 of the image, 8 bytes 0, 32 bytes key
 * (little endian). The key is the SHA-256 of everything that the image is made from. A file that does not fit is as good as none.
 */
import { closeSync, mkdirSync, openSync, readSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { IMAGE_VERSION, MAGIC, Word } from "./image/header.ts";
import { IMAGE_AT, imageMemory } from "./kernel/kernel.ts";

const FILE_MAGIC = 0x54_4c_4f_43;
const HEADER = 64;
const KEY_AT = 32;

/** Key of a tokenizer's image. The engine's version counts, because NFC and the image's class tables follow its Unicode tables. */
export function imageKey(tokenizerJson: Uint8Array): Buffer {
  const sha = new Bun.CryptoHasher("sha256");
  return sha.update(`${IMAGE_VERSION} ${Bun.version}\n`).update(tokenizerJson).digest();
}

/** Name of an image's file, in the cache folder and among the files of a binary. */
export const imageFileName = (key: Buffer): string => `tokenizer-${key.toString("hex")}.image`;

/** Memory with the stored image of this key, or undefined if there is none that is whole. */
export function readImage(cacheDir: string, key: Buffer): WebAssembly.Memory | undefined {
  let file: number | undefined;
  try {
    file = openSync(join(cacheDir, imageFileName(key)), "r");
    const header = Buffer.alloc(HEADER);
    if (!fill(file, header, 0)) return undefined;
    return openImage(header, key, (image) => fill(file as number, image, HEADER));
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** The image that a whole file's bytes hold, as `readImage`. */
export function imageOfBytes(bytes: Uint8Array, key: Buffer): WebAssembly.Memory | undefined {
  if (bytes.length < HEADER) return undefined;
  const header = Buffer.from(bytes.subarray(0, HEADER));
  return openImage(header, key, (image) => {
    if (bytes.length !== HEADER + image.length) return false;
    image.set(bytes.subarray(HEADER));
    return true;
  });
}

function openImage(header: Buffer, key: Buffer, load: (image: Uint8Array) => boolean): WebAssembly.Memory | undefined {
  const fits = header.readUInt32LE(0) === FILE_MAGIC && header.readUInt32LE(4) === IMAGE_VERSION;
  if (!fits || !header.subarray(KEY_AT).equals(key)) return undefined;
  const memory = imageMemory(header.readUInt32LE(8));
  const image = new Uint8Array(memory.buffer, IMAGE_AT, header.readUInt32LE(8));
  if (image.length < HEADER || !load(image) || Bun.hash.xxHash3(image) !== header.readBigUInt64LE(16)) return undefined;
  const words = new Uint32Array(memory.buffer, IMAGE_AT, HEADER);
  return words[Word.magic] === MAGIC && words[Word.version] === IMAGE_VERSION && words[Word.size] === image.length
    ? memory
    : undefined;
}

/** Fills `into` from the file; false if the file is too short. */
function fill(file: number, into: Uint8Array, from: number): boolean {
  for (let at = 0; at < into.length; ) {
    const n = readSync(file, into, at, into.length - at, from + at);
    if (n === 0) return false;
    at += n;
  }
  return true;
}

/** Header and image as the bytes of a cache file, in two parts. */
export function imageParts(memory: WebAssembly.Memory, key: Buffer): [Buffer, Uint8Array] {
  const size = new Uint32Array(memory.buffer, IMAGE_AT, HEADER)[Word.size]!;
  const image = new Uint8Array(memory.buffer, IMAGE_AT, size);
  const header = Buffer.alloc(HEADER);
  header.writeUInt32LE(FILE_MAGIC, 0);
  header.writeUInt32LE(IMAGE_VERSION, 4);
  header.writeUInt32LE(size, 8);
  header.writeBigUInt64LE(Bun.hash.xxHash3(image), 16);
  key.copy(header, KEY_AT);
  return [header, image];
}

/** Stores an image. A folder that can't be written only costs time at the next start: false then. */
export function writeImage(cacheDir: string, key: Buffer, memory: WebAssembly.Memory): boolean {
  const path = join(cacheDir, imageFileName(key));
  const temporary = `${path}.${process.pid}.${crypto.randomUUID().slice(0, 8)}`;
  try {
    mkdirSync(cacheDir, { recursive: true });
    const file = openSync(temporary, "wx", 0o600);
    try {
      for (const part of imageParts(memory, key)) {
        for (let at = 0; at < part.length; ) at += writeSync(file, part, at, part.length - at);
      }
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
    return true;
  } catch {
    removeIfThere(temporary);
    return false;
  }
}

function removeIfThere(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // what could not be made need not be removed
  }
}
