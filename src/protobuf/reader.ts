/** Reading of the Protocol Buffers wire format, field by field: https://protobuf.dev/programming-guides/encoding */
import { WireError, WireType } from "./wire-error.ts";

const decoder = new TextDecoder();
const NO_BYTES = new Uint8Array(0);
/** A number of 64 bits or less, as the wire and every machine that this runs on have it. A view of a message costs more than to copy it. */
const words = new Int32Array(2);
const wordBytes = new Uint8Array(words.buffer);
const floats = new Float32Array(words.buffer);
const doubles = new Float64Array(words.buffer);
const signedWords = new BigInt64Array(words.buffer);
const unsignedWords = new BigUint64Array(words.buffer);

/**
 * Cursor over a message. Readers of rare messages loop `while (r.next()) switch (r.field)`, with `skip` for the rest; those on the
 * token path read the tags themselves with `varint`. Reading past the end throws WireError.
 */
export class WireReader {
  private bytes: Uint8Array = NO_BYTES;
  at = 0;
  end = 0;
  /** Of the tag that `next` read. */
  field = 0;
  wireType = 0;

  constructor(bytes: Uint8Array = NO_BYTES, start = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  /** Starts on the message `bytes[start .. end)`. */
  reset(bytes: Uint8Array, start = 0, end = bytes.length): void {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  /** Moves to the next field; false at the end. */
  next(): boolean {
    if (this.at >= this.end) return false;
    const tag = this.varint();
    this.field = tag >>> 3;
    this.wireType = tag & 7;
    return true;
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

  int32(): number {
    return this.varint() | 0;
  }

  bool(): boolean {
    return this.varint() !== 0;
  }

  /** A 64-bit number. Made of words: a bigint for each byte would cost as much as all else of a message. */
  bigint(signed: boolean): bigint {
    this.int64Words(words, 0);
    return signed ? signedWords[0]! : unsignedWords[0]!;
  }

  /** A 64-bit number as two words, the lower first: `into[at]` and `into[at + 1]`, as a BigInt64Array over the same memory has it. */
  int64Words(into: Int32Array, at: number): void {
    const { bytes, end } = this;
    let from = this.at;
    let low = 0;
    let high = 0;
    for (let shift = 0; ; shift += 7) {
      if (from >= end || shift > 63) throw new WireError("number cut off or too long");
      const byte = bytes[from++]!;
      const bits = byte & 127;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high |= bits >>> 4;
      } else high |= bits << (shift - 32);
      if (byte < 128) break;
    }
    this.at = from;
    into[at] = low;
    into[at + 1] = high;
  }

  /** A 64-bit number, as exactly as a double holds it. */
  varint64(signed: boolean): number {
    this.int64Words(words, 0);
    const high = words[1]!;
    return (signed ? high : high >>> 0) * 2 ** 32 + (words[0]! >>> 0);
  }

  float(): number {
    if (this.end - this.at < 4) throw new WireError("message cut off");
    for (let i = 0; i < 4; i++) wordBytes[i] = this.bytes[this.at++]!;
    return floats[0]!;
  }

  double(): number {
    if (this.end - this.at < 8) throw new WireError("message cut off");
    for (let i = 0; i < 8; i++) wordBytes[i] = this.bytes[this.at++]!;
    return doubles[0]!;
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

  /** The same of one that is most likely `guess`: comparing is a tenth of reading. */
  stringLike(guess: string): string {
    const { bytes } = this;
    const from = this.at;
    const length = this.lengthPrefix();
    let same = length === guess.length ? 0 : -1;
    while (same >= 0 && same < length) {
      const byte = bytes[this.at + same]!;
      same = byte < 128 && byte === guess.charCodeAt(same) ? same + 1 : -1;
    }
    if (same >= 0) {
      this.at += length;
      return guess;
    }
    this.at = from;
    return this.string();
  }

  /** Bytes or a nested message, as a view. */
  block(): Uint8Array {
    const length = this.lengthPrefix();
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  /** A nested message. */
  message(): WireReader {
    const length = this.lengthPrefix();
    this.at += length;
    return new WireReader(this.bytes, this.at - length, this.at);
  }

  /** A repeated uint32, packed or not, appended to `into`. */
  uint32s(into: number[], wireType: number = this.wireType): void {
    if (wireType !== WireType.BYTES) {
      into.push(this.varint());
      return;
    }
    const length = this.lengthPrefix();
    for (const end = this.at + length; this.at < end; ) into.push(this.varint());
  }

  /** Packed uint32s, `bytes` of them in length, into `into[at]` and what follows, which must have room for as many. Returns their number. */
  packedUint32s(into: Uint32Array, at: number, length: number): number {
    const { bytes } = this;
    const end = this.at + length;
    let from = this.at;
    let to = at;
    while (from < end) {
      let byte = bytes[from++]!;
      let value = byte & 127;
      for (let shift = 7; byte > 127; shift += 7) {
        if (from >= end || shift > 63) throw new WireError("number cut off or too long");
        byte = bytes[from++]!;
        if (shift < 32) value |= (byte & 127) << shift;
      }
      into[to++] = value;
    }
    this.at = end;
    return to - at;
  }

  /** A repeated uint32, packed or not, behind those of `before`. */
  uint32Array(before: Uint32Array, wireType: number = this.wireType): Uint32Array {
    let end = this.at;
    let count = 1;
    if (wireType === WireType.BYTES) {
      const length = this.lengthPrefix();
      end = this.at + length;
      count = 0;
      // Every number has one byte without the mark that another follows.
      for (let i = this.at; i < end; i++) if (this.bytes[i]! < 0x80) count++;
      if (count === 0 && length > 0) throw new WireError("number cut off or too long");
    }
    const all = new Uint32Array(before.length + count);
    all.set(before);
    for (let i = before.length; i < all.length; i++) all[i] = this.varint();
    if (wireType === WireType.BYTES && this.at !== end) throw new WireError("number cut off or too long");
    return all;
  }

  /** A repeated float, packed or not, appended to `into`. */
  floats(into: number[], wireType: number = this.wireType): void {
    if (wireType !== WireType.BYTES) {
      into.push(this.float());
      return;
    }
    const length = this.lengthPrefix();
    for (const end = this.at + length; this.at < end; ) into.push(this.float());
  }

  /** A repeated float, packed or not, behind those of `before`. */
  float32Array(before: Float32Array, wireType: number = this.wireType): Float32Array {
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
  skip(wireType: number = this.wireType): void {
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
