/** Writes protocol buffers (proto3 wire format) into one growing buffer. Reuse with `reset`; the bytes are valid until then. */
export class ProtoWriter {
  bytes = new Uint8Array(1024);
  length = 0;

  reset(): this {
    this.length = 0;
    return this;
  }

  /** What was written, as a view. */
  view(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }

  private room(count: number): void {
    if (this.length + count <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(2 * this.bytes.length, this.length + count));
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
  }

  /** An unsigned number up to 2^53 as a varint. */
  varint(value: number): void {
    this.room(10);
    const { bytes } = this;
    let at = this.length;
    let rest = value;
    while (rest >= 0x80) {
      bytes[at++] = (rest % 0x80) | 0x80;
      rest = rest > 0x7fffffff ? Math.floor(rest / 0x80) : rest >>> 7;
    }
    bytes[at++] = rest;
    this.length = at;
  }

  /** A 64-bit number with sign, as int64 is coded. */
  int64(value: bigint): void {
    let rest = BigInt.asUintN(64, value);
    this.room(10);
    while (rest >= 0x80n) {
      this.bytes[this.length++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.bytes[this.length++] = Number(rest);
  }

  tag(field: number, wireType: number): void {
    this.varint(field * 8 + wireType);
  }

  /** Number field without presence: 0 is left out. */
  uint(field: number, value: number): void {
    if (value === 0) return;
    this.tag(field, 0);
    this.varint(value);
  }

  float(value: number): void {
    this.room(4);
    new DataView(this.bytes.buffer, this.bytes.byteOffset + this.length, 4).setFloat32(0, value, true);
    this.length += 4;
  }

  double(value: number): void {
    this.room(8);
    new DataView(this.bytes.buffer, this.bytes.byteOffset + this.length, 8).setFloat64(0, value, true);
    this.length += 8;
  }

  /** Length-delimited field. */
  block(field: number, data: Uint8Array): void {
    this.tag(field, 2);
    this.varint(data.length);
    this.room(data.length);
    this.bytes.set(data, this.length);
    this.length += data.length;
  }

  text(field: number, value: string): void {
    if (value !== "") this.block(field, Buffer.from(value, "utf8"));
  }

  /** Packed repeated numbers; an empty list is left out. */
  packedUints(field: number, values: ArrayLike<number>, from = 0, to = values.length): void {
    if (to <= from) return;
    const mark = this.begin(field);
    for (let i = from; i < to; i++) this.varint(values[i]!);
    this.end(mark);
  }

  packedFloats(field: number, values: ArrayLike<number>): void {
    if (values.length === 0) return;
    this.tag(field, 2);
    this.varint(4 * values.length);
    for (let i = 0; i < values.length; i++) this.float(values[i]!);
  }

  /** Opens a nested message or packed list of unknown length; give the result to `end`. */
  begin(field: number): number {
    this.tag(field, 2);
    this.room(1);
    return ++this.length;
  }

  /** Closes what `begin` opened: writes its length in front. */
  end(mark: number): void {
    const size = this.length - mark;
    let extra = 0;
    for (let rest = size; rest >= 0x80; rest >>>= 7) extra++;
    if (extra > 0) {
      this.room(extra);
      this.bytes.copyWithin(mark + extra, mark, this.length);
      this.length += extra;
    }
    let at = mark - 1;
    let rest = size;
    while (rest >= 0x80) {
      this.bytes[at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.bytes[at] = rest;
  }
}
