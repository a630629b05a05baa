/** Writing of the Protocol Buffers wire format, field by field: https://protobuf.dev/programming-guides/encoding */
import { WireType } from "./wire-error.ts";

const encoder = new TextEncoder();

/** Bytes that an unsigned 32-bit number takes. */
export function varintSize(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x200000) return 3;
  return value < 0x10000000 ? 4 : 5;
}

/** Writes an unsigned 32-bit number at `at`; returns the place after it. */
export function putVarint(out: Uint8Array, at: number, value: number): number {
  let rest = value >>> 0;
  let place = at;
  while (rest > 127) {
    out[place++] = (rest & 127) | 128;
    rest >>>= 7;
  }
  out[place++] = rest;
  return place;
}

/**
 * Growing buffer of a message; fields are written in the order of the calls, each with its tag. What is called is written: only
 * `uint`, `text` and packed lists leave out what a field without presence has anyway.
 */
export class WireWriter {
  /** What was written lies in `bytes[0 .. length)`, as `written` gives it. */
  bytes = new Uint8Array(256);
  private data = new DataView(this.bytes.buffer);
  length = 0;

  reset(): this {
    this.length = 0;
    return this;
  }

  /** What was written since `reset`; valid until the next write. */
  written(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }

  private reserve(count: number): void {
    const needed = this.length + count;
    if (needed <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, this.bytes.length * 2));
    grown.set(this.written());
    this.bytes = grown;
    this.data = new DataView(grown.buffer);
  }

  private tag(field: number, wireType: number): void {
    this.length = putVarint(this.bytes, this.length, (field << 3) | wireType);
  }

  /** A number alone, up to 2^53: for packed lists between `begin` and `end`. */
  varint(value: number): void {
    this.reserve(10);
    let rest = value;
    while (rest > 0xffffffff) {
      this.bytes[this.length++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    this.length = putVarint(this.bytes, this.length, rest);
  }

  /** A 64-bit number alone, with or without sign, as int64 and uint64 are coded. */
  varint64(value: bigint): void {
    this.reserve(10);
    let rest = BigInt.asUintN(64, value);
    while (rest > 127n) {
      this.bytes[this.length++] = Number(rest & 127n) | 128;
      rest >>= 7n;
    }
    this.bytes[this.length++] = Number(rest);
  }

  uint32(field: number, value: number): void {
    this.reserve(10);
    this.tag(field, WireType.VARINT);
    this.length = putVarint(this.bytes, this.length, value);
  }

  /** Negative numbers take ten bytes, as int32 does on the wire. */
  int32(field: number, value: number): void {
    if (value >= 0) this.uint32(field, value);
    else this.int64(field, BigInt(value));
  }

  int64(field: number, value: bigint): void {
    this.reserve(5);
    this.tag(field, WireType.VARINT);
    this.varint64(value);
  }

  /** An unsigned number up to 2^53; 0 is left out. */
  uint(field: number, value: number): void {
    if (value === 0) return;
    this.reserve(5);
    this.tag(field, WireType.VARINT);
    this.varint(value);
  }

  bool(field: number, value: boolean): void {
    this.uint32(field, value ? 1 : 0);
  }

  float(field: number, value: number): void {
    this.reserve(9);
    this.tag(field, WireType.FIXED32);
    this.data.setFloat32(this.length, value, true);
    this.length += 4;
  }

  double(field: number, value: number): void {
    this.reserve(13);
    this.tag(field, WireType.FIXED64);
    this.data.setFloat64(this.length, value, true);
    this.length += 8;
  }

  string(field: number, value: string): void {
    const size = Buffer.byteLength(value);
    this.reserve(10 + size);
    this.tag(field, WireType.BYTES);
    this.length = putVarint(this.bytes, this.length, size);
    encoder.encodeInto(value, this.bytes.subarray(this.length, this.length + size));
    this.length += size;
  }

  /** A string; an empty one is left out. */
  text(field: number, value: string): void {
    if (value !== "") this.string(field, value);
  }

  /** A nested message or bytes. */
  message(field: number, value: Uint8Array): void {
    this.reserve(10 + value.length);
    this.tag(field, WireType.BYTES);
    this.length = putVarint(this.bytes, this.length, value.length);
    this.bytes.set(value, this.length);
    this.length += value.length;
  }

  /** Packed numbers `values[from .. to)`; an empty list is left out. */
  packedUint32(field: number, values: ArrayLike<number>, from = 0, to = values.length): void {
    if (to <= from) return;
    let size = 0;
    for (let i = from; i < to; i++) size += varintSize(values[i]! >>> 0);
    this.reserve(10 + size);
    this.tag(field, WireType.BYTES);
    this.length = putVarint(this.bytes, this.length, size);
    for (let i = from; i < to; i++) this.length = putVarint(this.bytes, this.length, values[i]!);
  }

  /** Packed numbers; an empty list is left out. */
  packedFloats(field: number, values: ArrayLike<number>): void {
    if (values.length === 0) return;
    this.reserve(10 + 4 * values.length);
    this.tag(field, WireType.BYTES);
    this.length = putVarint(this.bytes, this.length, 4 * values.length);
    for (let i = 0; i < values.length; i++) {
      this.data.setFloat32(this.length, values[i]!, true);
      this.length += 4;
    }
  }

  /** Opens a nested message or packed list of unknown length; give the result to `end`. */
  begin(field: number): number {
    this.reserve(6);
    this.tag(field, WireType.BYTES);
    return ++this.length;
  }

  /** Closes what `begin` opened: writes its length in front. */
  end(mark: number): void {
    const size = this.length - mark;
    const extra = varintSize(size) - 1;
    if (extra > 0) {
      this.reserve(extra);
      this.bytes.copyWithin(mark + extra, mark, this.length);
      this.length += extra;
    }
    putVarint(this.bytes, mark - 1, size);
  }
}
