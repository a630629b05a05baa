/** Tokenizer bundle of an engine: a zip in pieces, with its digest on the last one. */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { inflateRaw } from "node:zlib";
import { EngineError, type TokenizerBundle } from "./engine.ts";

export interface BundleLimits {
  readonly zippedBytes: number;
  readonly entries: number;
  readonly unzippedBytes: number;
}

export const BUNDLE_LIMITS: BundleLimits = { zippedBytes: 200 << 20, entries: 50, unzippedBytes: 500 << 20 };

const inflateRawAsync = promisify(inflateRaw);
const END_OF_DIRECTORY = 0x06054b50;
const DIRECTORY_ENTRY = 0x02014b50;
const LOCAL_ENTRY = 0x04034b50;
const END_SIZE = 22;
const MAX_COMMENT = 0xffff;
const STORED = 0;
const DEFLATED = 8;
const ENCRYPTED = 1;

function broken(what: string): EngineError {
  return new EngineError("failed", `tokenizer bundle: ${what}`);
}

/** Collects the pieces of a bundle. Every problem is an EngineError of kind "failed". */
export class BundleCollector {
  private readonly pieces: Uint8Array[] = [];
  private bytes = 0;
  private digest = "";
  private readonly hash = createHash("sha256");

  constructor(private readonly limits: BundleLimits = BUNDLE_LIMITS) {}

  /** Adds a piece (copied). `sha256` is the hex digest of the whole, on the last piece only. */
  add(data: Uint8Array, sha256: string): void {
    if (this.digest !== "") throw broken("a piece after the last one");
    this.bytes += data.length;
    if (this.bytes > this.limits.zippedBytes) throw broken(`over ${this.limits.zippedBytes} bytes`);
    this.hash.update(data);
    this.pieces.push(data.slice());
    this.digest = sha256;
  }

  /** The files, once all pieces have come. */
  async finish(): Promise<TokenizerBundle> {
    if (this.digest === "") throw broken("no digest on the last piece");
    if (this.hash.digest("hex") !== this.digest.toLowerCase()) throw broken("the digest differs");
    return unzip(Buffer.concat(this.pieces, this.bytes), this.limits);
  }
}

/**
 * Files of a zip with flat names. Sizes are enforced while inflating, whatever the directory says.
 * Format: PKWARE APPNOTE 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16; neither ZIP64 nor encryption.
 */
export async function unzip(zip: Uint8Array, limits: BundleLimits = BUNDLE_LIMITS): Promise<TokenizerBundle> {
  const buffer = Buffer.from(zip.buffer, zip.byteOffset, zip.byteLength);
  const end = findEnd(buffer);
  const count = buffer.readUInt16LE(end + 10);
  if (count > limits.entries) throw broken(`${count} files, more than ${limits.entries}`);
  const files = new Map<string, Uint8Array>();
  let left = limits.unzippedBytes;
  let at = buffer.readUInt32LE(end + 16);
  for (let i = 0; i < count; i++) {
    if (at + 46 > end || buffer.readUInt32LE(at) !== DIRECTORY_ENTRY) throw broken("broken zip directory");
    const flags = buffer.readUInt16LE(at + 8);
    const method = buffer.readUInt16LE(at + 10);
    const packed = buffer.readUInt32LE(at + 20);
    const size = buffer.readUInt32LE(at + 24);
    const nameLength = buffer.readUInt16LE(at + 28);
    const local = buffer.readUInt32LE(at + 42);
    const name = buffer.toString("utf8", at + 46, at + 46 + nameLength);
    at += 46 + nameLength + buffer.readUInt16LE(at + 30) + buffer.readUInt16LE(at + 32);
    if (!isFlatName(name)) throw broken("a file name that is not flat");
    if (files.has(name)) throw broken("two files of one name");
    if (flags & ENCRYPTED) throw broken("an encrypted file");
    if (size > left) throw broken(`over ${limits.unzippedBytes} bytes unpacked`);
    const data = entryData(buffer, local, packed, end);
    const file = await unpack(data, method, size);
    left -= file.length;
    files.set(name, file);
  }
  return files;
}

function findEnd(buffer: Buffer): number {
  const lowest = Math.max(0, buffer.length - END_SIZE - MAX_COMMENT);
  for (let at = buffer.length - END_SIZE; at >= lowest; at--)
    if (buffer.readUInt32LE(at) === END_OF_DIRECTORY) return at;
  throw broken("not a zip");
}

function entryData(buffer: Buffer, local: number, packed: number, end: number): Buffer {
  if (local + 30 > end || buffer.readUInt32LE(local) !== LOCAL_ENTRY) throw broken("broken zip entry");
  const start = local + 30 + buffer.readUInt16LE(local + 26) + buffer.readUInt16LE(local + 28);
  if (start + packed > end) throw broken("broken zip entry");
  return buffer.subarray(start, start + packed);
}

async function unpack(data: Buffer, method: number, size: number): Promise<Uint8Array> {
  let file: Uint8Array;
  if (method === STORED) file = Uint8Array.from(data);
  else if (method === DEFLATED) {
    try {
      // One byte above the stated size, so that a file that lies about its size is told from one that fits.
      file = await inflateRawAsync(data, { maxOutputLength: size + 1 });
    } catch (error) {
      throw new EngineError("failed", "tokenizer bundle: a file does not unpack to its stated size", { cause: error });
    }
  } else throw broken(`compression method ${method}`);
  if (file.length !== size) throw broken("a file does not unpack to its stated size");
  return file;
}

function isFlatName(name: string): boolean {
  if (name === "" || name === "." || name === ".." || name.includes("\ufffd")) return false;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
  return !/[/\\:\u0000-\u001f\u007f]/.test(name);
}
