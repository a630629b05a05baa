import { createHash } from "node:crypto";
import { crc32, deflateRawSync } from "node:zlib";

/** A deflate zip of files under flat names, with its SHA-256 in hex. */
export interface TokenizerZip {
  readonly bytes: Uint8Array;
  readonly sha256: string;
}

const LOCAL_HEADER = 0x04034b50;
const CENTRAL_HEADER = 0x02014b50;
const END_OF_DIRECTORY = 0x06054b50;
const DEFLATE = 8;
const UTF8_NAMES = 0x800;
const VERSION = 20;
/** 1 January 1980, the earliest date of the format: equal files give equal zips. */
const DATE = 0x21;

/** Packs a tokenizer bundle as the engines do (zip format: APPNOTE.TXT 4.3). The system's deflate is ten times as fast as one in JavaScript. */
export function packBundle(files: ReadonlyMap<string, Uint8Array>): TokenizerZip {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, data] of files) {
    const encoded = Buffer.from(name, "utf8");
    const packed = deflateRawSync(data, { level: 1 });
    const common = Buffer.alloc(26);
    common.writeUInt16LE(VERSION, 0);
    common.writeUInt16LE(UTF8_NAMES, 2);
    common.writeUInt16LE(DEFLATE, 4);
    common.writeUInt16LE(0, 6);
    common.writeUInt16LE(DATE, 8);
    common.writeUInt32LE(crc32(data), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(data.length, 18);
    common.writeUInt16LE(encoded.length, 22);
    const central = Buffer.alloc(14);
    central.writeUInt32LE(offset, 10);
    directory.push(uint32(CENTRAL_HEADER), uint16(VERSION), common, central, encoded);
    parts.push(uint32(LOCAL_HEADER), common, encoded, packed);
    offset += 30 + encoded.length + packed.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(END_OF_DIRECTORY, 0);
  end.writeUInt16LE(files.size, 8);
  end.writeUInt16LE(files.size, 10);
  end.writeUInt32LE(size, 12);
  end.writeUInt32LE(offset, 16);
  const bytes = Buffer.concat([...parts, ...directory, end]);
  return { bytes, sha256: createHash("sha256").update(bytes).digest("hex") };
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** Pieces of a zip in order. */
export function* pieces(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
