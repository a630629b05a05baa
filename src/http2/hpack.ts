import { ConnectionError, ErrorCode } from "./frames.ts";
import { decodeHuffman } from "./huffman.ts";

/** Header compression (RFC 7541): a full decoder, and an encoder without state. */

const STATIC_TABLE: readonly (readonly [string, string])[] = [
  [":authority", ""],
  [":method", "GET"],
  [":method", "POST"],
  [":path", "/"],
  [":path", "/index.html"],
  [":scheme", "http"],
  [":scheme", "https"],
  [":status", "200"],
  [":status", "204"],
  [":status", "206"],
  [":status", "304"],
  [":status", "400"],
  [":status", "404"],
  [":status", "500"],
  ["accept-charset", ""],
  ["accept-encoding", "gzip, deflate"],
  ["accept-language", ""],
  ["accept-ranges", ""],
  ["accept", ""],
  ["access-control-allow-origin", ""],
  ["age", ""],
  ["allow", ""],
  ["authorization", ""],
  ["cache-control", ""],
  ["content-disposition", ""],
  ["content-encoding", ""],
  ["content-language", ""],
  ["content-length", ""],
  ["content-location", ""],
  ["content-range", ""],
  ["content-type", ""],
  ["cookie", ""],
  ["date", ""],
  ["etag", ""],
  ["expect", ""],
  ["expires", ""],
  ["from", ""],
  ["host", ""],
  ["if-match", ""],
  ["if-modified-since", ""],
  ["if-none-match", ""],
  ["if-range", ""],
  ["if-unmodified-since", ""],
  ["last-modified", ""],
  ["link", ""],
  ["location", ""],
  ["max-forwards", ""],
  ["proxy-authenticate", ""],
  ["proxy-authorization", ""],
  ["range", ""],
  ["referer", ""],
  ["refresh", ""],
  ["retry-after", ""],
  ["server", ""],
  ["set-cookie", ""],
  ["strict-transport-security", ""],
  ["transfer-encoding", ""],
  ["user-agent", ""],
  ["vary", ""],
  ["via", ""],
  ["www-authenticate", ""],
];

/** A header block that can not be decoded. */
export class HpackError extends ConnectionError {
  constructor(message: string) {
    super(ErrorCode.COMPRESSION_ERROR, message);
  }
}

/** Largest dynamic table, in bytes, that we let a peer use: the protocol's default, which we do not change. */
export const HPACK_TABLE_BYTES = 4096;
/** Bytes that RFC 7541 counts for an entry on top of its name and value. */
const ENTRY_OVERHEAD = 32;
/** Largest header list that is kept, counted as RFC 9113 counts it (section 6.5.2). A few bytes may stand for a table's worth. */
export const MAX_HEADER_LIST_BYTES = 64 * 1024;

/** One connection's decoder: its dynamic table lives as long as the connection. */
export class HpackDecoder {
  /** Newest entry first. */
  private table: (readonly [string, string])[] = [];
  private tableBytes = 0;
  private tableLimit = HPACK_TABLE_BYTES;
  private bytes: Uint8Array = new Uint8Array(0);
  private at = 0;
  private listBytes = 0;

  /** The block decoded last held more than MAX_HEADER_LIST_BYTES. */
  get tooLarge(): boolean {
    return this.listBytes > MAX_HEADER_LIST_BYTES;
  }

  /**
   * Decodes one whole header block; repeated names are joined by ", ". Throws HpackError. What exceeds the limit of a header
   * list is read, because the table must stay in step with the peer's, and dropped.
   */
  decode(block: Uint8Array): Map<string, string> {
    this.bytes = block;
    this.at = 0;
    this.listBytes = 0;
    const headers = new Map<string, string>();
    while (this.at < block.length) {
      const first = block[this.at]!;
      if (first & 0x80) {
        const [name, value] = this.entry(this.integer(7));
        this.add(headers, name, value);
      } else if (first & 0x40) {
        const [name, value] = this.literal(6);
        this.insert(name, value);
        this.add(headers, name, value);
      } else if (first & 0x20) {
        const limit = this.integer(5);
        if (limit > HPACK_TABLE_BYTES) throw new HpackError("dynamic table size above the limit");
        this.tableLimit = limit;
        this.evict();
      } else {
        const [name, value] = this.literal(4);
        this.add(headers, name, value);
      }
    }
    return headers;
  }

  private add(headers: Map<string, string>, name: string, value: string): void {
    this.listBytes += name.length + value.length + ENTRY_OVERHEAD;
    if (this.tooLarge) return;
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }

  private entry(index: number): readonly [string, string] {
    const entry = index <= STATIC_TABLE.length ? STATIC_TABLE[index - 1] : this.table[index - STATIC_TABLE.length - 1];
    if (!entry) throw new HpackError(`no table entry ${index}`);
    return entry;
  }

  private literal(prefixBits: number): [string, string] {
    const index = this.integer(prefixBits);
    const name = index === 0 ? this.string() : this.entry(index)[0];
    return [name, this.string()];
  }

  private insert(name: string, value: string): void {
    this.table.unshift([name, value]);
    this.tableBytes += name.length + value.length + ENTRY_OVERHEAD;
    this.evict();
  }

  private evict(): void {
    while (this.tableBytes > this.tableLimit) {
      const [name, value] = this.table.pop()!;
      this.tableBytes -= name.length + value.length + ENTRY_OVERHEAD;
    }
  }

  private integer(prefixBits: number): number {
    const mask = (1 << prefixBits) - 1;
    let value = this.byte() & mask;
    if (value < mask) return value;
    for (let shift = 0; shift <= 21; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) << shift;
      if (!(byte & 0x80)) return value;
    }
    throw new HpackError("integer too large");
  }

  private string(): string {
    const huffman = (this.bytes[this.at] ?? 0) & 0x80;
    const length = this.integer(7);
    const end = this.at + length;
    if (end > this.bytes.length) throw new HpackError("header block is cut short");
    const text = huffman ? decodeHuffman(this.bytes, this.at, end) : latin1(this.bytes, this.at, end);
    if (text === undefined) throw new HpackError("malformed Huffman coding");
    this.at = end;
    return text;
  }

  private byte(): number {
    const byte = this.bytes[this.at++];
    if (byte === undefined) throw new HpackError("header block is cut short");
    return byte;
  }
}

function latin1(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
}

/** Whole headers that the static table has, by `name value`. */
const STATIC_INDEX = new Map(
  STATIC_TABLE.flatMap(([name, value], i) => (value === "" ? [] : [[`${name} ${value}`, i + 1] as const])),
);

/** Says that the table is empty from now on: the encoder never fills it. Goes first in a block, once a peer made its table smaller. */
export const EMPTY_TABLE = Uint8Array.of(0x20);

/** Encodes headers: by their static index where they have one, else as literals without indexing and without Huffman coding. */
export function encodeHeaders(headers: Iterable<readonly [string, string]>): Uint8Array {
  const out: number[] = [];
  const string = (text: string) => {
    integer(out, text.length, 7, 0);
    for (let i = 0; i < text.length; i++) out.push(text.charCodeAt(i));
  };
  for (const [name, value] of headers) {
    const index = STATIC_INDEX.get(`${name} ${value}`);
    if (index !== undefined) {
      integer(out, index, 7, 0x80);
      continue;
    }
    out.push(0);
    string(name);
    string(value);
  }
  return Uint8Array.from(out);
}

function integer(out: number[], value: number, prefixBits: number, flags: number): void {
  const mask = (1 << prefixBits) - 1;
  if (value < mask) {
    out.push(flags | value);
    return;
  }
  out.push(flags | mask);
  let rest = value - mask;
  while (rest >= 0x80) {
    out.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  out.push(rest);
}
