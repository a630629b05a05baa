/** Writing of MessagePack: https://github.com/msgpack/msgpack/blob/master/spec.md */
const encoder = new TextEncoder();

/** Growing buffer of one message; values are written in the order of the calls, those of an array or map behind its head. */
export class MsgpackWriter {
  private bytes = new Uint8Array(1024);
  private data = new DataView(this.bytes.buffer);
  private length = 0;

  /** A copy of what was written; the next message starts empty. */
  take(): Uint8Array {
    const taken = this.bytes.slice(0, this.length);
    this.length = 0;
    return taken;
  }

  nil(): void {
    this.byte(0xc0);
  }

  double(value: number): void {
    this.byte(0xcb);
    const at = this.grow(8);
    this.data.setFloat64(at, value);
  }

  /** A whole number from 0 to 2^32 - 1. */
  uint(value: number): void {
    if (value < 0x80) this.byte(value);
    else if (value < 0x100) {
      this.byte(0xcc);
      this.byte(value);
    } else if (value < 0x10000) {
      this.byte(0xcd);
      const at = this.grow(2);
      this.data.setUint16(at, value);
    } else {
      this.byte(0xce);
      const at = this.grow(4);
      this.data.setUint32(at, value);
    }
  }

  /** A 64-bit number, below 0 with its sign. */
  big(value: bigint): void {
    this.byte(value < 0n ? 0xd3 : 0xcf);
    const at = this.grow(8);
    this.data.setBigUint64(at, BigInt.asUintN(64, value));
  }

  text(value: string): void {
    const utf8 = encoder.encode(value);
    if (utf8.length < 32) this.byte(0xa0 | utf8.length);
    else {
      this.byte(0xdb);
      const at = this.grow(4);
      this.data.setUint32(at, utf8.length);
    }
    const at = this.grow(utf8.length);
    this.bytes.set(utf8, at);
  }

  array(count: number): void {
    this.head(count, 0x90, 0xdc);
  }

  map(count: number): void {
    this.head(count, 0x80, 0xde);
  }

  private head(count: number, small: number, wide: number): void {
    if (count < 16) this.byte(small | count);
    else if (count < 0x10000) {
      this.byte(wide);
      const at = this.grow(2);
      this.data.setUint16(at, count);
    } else {
      this.byte(wide + 1);
      const at = this.grow(4);
      this.data.setUint32(at, count);
    }
  }

  private byte(value: number): void {
    const at = this.grow(1); // which may bring other bytes
    this.bytes[at] = value;
  }

  /** Makes room for so many bytes and gives the place of the first. */
  private grow(count: number): number {
    const at = this.length;
    this.length += count;
    if (this.length > this.bytes.length) {
      const grown = new Uint8Array(Math.max(this.length, 2 * this.bytes.length));
      grown.set(this.bytes.subarray(0, at));
      this.bytes = grown;
      this.data = new DataView(grown.buffer);
    }
    return at;
  }
}
