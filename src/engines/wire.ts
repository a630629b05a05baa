/** Protocol Buffers wire format, written and read by hand where a message is on the token path. */

/** Wire types of protobuf. */
export const WireType = { VARINT: 0, FIXED64: 1, BYTES: 2, FIXED32: 5 } as const;

/** Bytes that are not the message they should be. */
export class WireError extends Error {
  override readonly name = "WireError";
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

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

/** Growing buffer of a message; fields are written in the order of the calls, each with its tag. */
export class WireWriter {
  private bytes = new Uint8Array(256);
  private view = new DataView(this.bytes.buffer);
  private length = 0;

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
    this.view = new DataView(grown.buffer);
  }

  private varint(value: number): void {
    this.length = putVarint(this.bytes, this.length, value);
  }

  uint32(field: number, value: number): void {
    this.reserve(10);
    this.varint(field << 3);
    this.varint(value);
  }

  /** Negative numbers take ten bytes, as int32 does on the wire. */
  int32(field: number, value: number): void {
    if (value >= 0) {
      this.uint32(field, value);
      return;
    }
    this.reserve(15);
    this.varint(field << 3);
    let rest = BigInt.asUintN(64, BigInt(value));
    while (rest > 127n) {
      this.bytes[this.length++] = Number(rest & 127n) | 128;
      rest >>= 7n;
    }
    this.bytes[this.length++] = Number(rest);
  }

  bool(field: number, value: boolean): void {
    this.uint32(field, value ? 1 : 0);
  }

  float(field: number, value: number): void {
    this.reserve(9);
    this.varint((field << 3) | WireType.FIXED32);
    this.view.setFloat32(this.length, value, true);
    this.length += 4;
  }

  string(field: number, value: string): void {
    const size = Buffer.byteLength(value);
    this.reserve(10 + size);
    this.varint((field << 3) | WireType.BYTES);
    this.varint(size);
    encoder.encodeInto(value, this.bytes.subarray(this.length, this.length + size));
    this.length += size;
  }

  /** A nested message or bytes. */
  message(field: number, value: Uint8Array): void {
    this.reserve(10 + value.length);
    this.varint((field << 3) | WireType.BYTES);
    this.varint(value.length);
    this.bytes.set(value, this.length);
    this.length += value.length;
  }

  packedUint32(field: number, values: readonly number[] | Uint32Array): void {
    let size = 0;
    for (const value of values) size += varintSize(value >>> 0);
    this.reserve(10 + size);
    this.varint((field << 3) | WireType.BYTES);
    this.varint(size);
    for (const value of values) this.varint(value);
  }
}

/** Cursor over a message. Reading past the end throws WireError. */
export class WireReader {
  private bytes: Uint8Array = new Uint8Array(0);
  private view: DataView | undefined;
  at = 0;
  end = 0;

  /** Starts on the message `bytes[start .. end)`. */
  reset(bytes: Uint8Array, start = 0, end = bytes.length): void {
    this.bytes = bytes;
    this.view = undefined;
    this.at = start;
    this.end = end;
  }

  /** Low 32 bits of a number, unsigned. */
  varint(): number {
    const bytes = this.bytes;
    let at = this.at;
    let byte = bytes[at++]!;
    let value = byte & 127;
    if (byte > 127) {
      let shift = 7;
      do {
        if (at >= this.end || shift > 63) throw new WireError("number cut off or too long");
        byte = bytes[at++]!;
        if (shift < 32) value |= (byte & 127) << shift;
        shift += 7;
      } while (byte > 127);
    }
    if (at > this.end) throw new WireError("message cut off");
    this.at = at;
    return value >>> 0;
  }

  /** A 64-bit number, as exactly as a double holds it. */
  varint64(signed: boolean): number {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      if (this.at >= this.end || shift > 63n) throw new WireError("number cut off or too long");
      const byte = this.bytes[this.at++]!;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) break;
    }
    return Number(signed ? BigInt.asIntN(64, value) : BigInt.asUintN(64, value));
  }

  double(): number {
    if (this.end - this.at < 8) throw new WireError("message cut off");
    this.view ??= new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.length);
    const value = this.view.getFloat64(this.at, true);
    this.at += 8;
    return value;
  }

  /** Length of the bytes that follow, checked against what is left. */
  lengthPrefix(): number {
    const length = this.varint();
    if (length > this.end - this.at) throw new WireError("message cut off");
    return length;
  }

  string(): string {
    const length = this.lengthPrefix();
    const text = length === 0 ? "" : decoder.decode(this.bytes.subarray(this.at, this.at + length));
    this.at += length;
    return text;
  }

  float(): number {
    if (this.end - this.at < 4) throw new WireError("message cut off");
    this.view ??= new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.length);
    const value = this.view.getFloat32(this.at, true);
    this.at += 4;
    return value;
  }

  /** A repeated uint32, packed or not, appended to `into`. */
  uint32s(wireType: number, into: number[]): void {
    if (wireType !== WireType.BYTES) {
      into.push(this.varint());
      return;
    }
    const length = this.lengthPrefix();
    for (const end = this.at + length; this.at < end; ) into.push(this.varint());
  }

  /** A repeated float, packed or not, appended to `into`. */
  floats(wireType: number, into: number[]): void {
    if (wireType !== WireType.BYTES) {
      into.push(this.float());
      return;
    }
    const length = this.lengthPrefix();
    for (const end = this.at + length; this.at < end; ) into.push(this.float());
  }

  /** A repeated float, packed or not, behind those of `before`. */
  float32Array(wireType: number, before: Float32Array): Float32Array {
    const length = wireType === WireType.BYTES ? this.lengthPrefix() : 4;
    if (length % 4 !== 0) throw new WireError("numbers cut off");
    if (length > this.end - this.at) throw new WireError("message cut off");
    const all = new Float32Array(before.length + length / 4);
    all.set(before);
    // The wire is little-endian, and so is every machine that this runs on.
    new Uint8Array(all.buffer, before.byteLength).set(this.bytes.subarray(this.at, this.at + length));
    this.at += length;
    return all;
  }

  /** Steps over a field that is not known. */
  skip(wireType: number): void {
    if (wireType === WireType.VARINT) this.varint();
    else if (wireType === WireType.BYTES) {
      // Not `this.at += this.lengthPrefix()`: that takes the place before the prefix was read.
      const length = this.lengthPrefix();
      this.at += length;
    } else if (wireType === WireType.FIXED32) this.at += 4;
    else if (wireType === WireType.FIXED64) this.at += 8;
    else throw new WireError(`unknown wire type ${wireType}`);
    if (this.at > this.end) throw new WireError("message cut off");
  }
}
