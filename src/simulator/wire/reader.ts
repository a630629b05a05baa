/** A message that is not valid proto3 wire format. */
export class ProtoError extends Error {
  override readonly name = "ProtoError";
}

/** Reads protocol buffers (proto3 wire format) field by field: `while (r.next()) switch (r.field) ...`, `skip` for the rest. */
export class ProtoReader {
  field = 0;
  wireType = 0;
  private readonly view: DataView;

  constructor(
    private readonly bytes: Uint8Array,
    private at = 0,
    private readonly end = bytes.length,
  ) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Moves to the next field; false at the end. */
  next(): boolean {
    if (this.at >= this.end) return false;
    const tag = this.uint();
    this.field = Math.floor(tag / 8);
    this.wireType = tag % 8;
    return true;
  }

  /** Unsigned varint; exact up to 2^53. */
  uint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 10; i++) {
      if (this.at >= this.end) throw new ProtoError("message is cut short");
      const byte = this.bytes[this.at++]!;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 0x80;
    }
    throw new ProtoError("varint too long");
  }

  /** Signed 32-bit number. */
  int32(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.at >= this.end) throw new ProtoError("message is cut short");
      const byte = this.bytes[this.at++]!;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new ProtoError("varint too long");
  }

  bool(): boolean {
    return this.uint() !== 0;
  }

  float(): number {
    this.at += 4;
    if (this.at > this.end) throw new ProtoError("message is cut short");
    return this.view.getFloat32(this.at - 4, true);
  }

  double(): number {
    this.at += 8;
    if (this.at > this.end) throw new ProtoError("message is cut short");
    return this.view.getFloat64(this.at - 8, true);
  }

  /** Length-delimited field as a view. */
  block(): Uint8Array {
    const length = this.uint();
    this.at += length;
    if (this.at > this.end) throw new ProtoError("message is cut short");
    return this.bytes.subarray(this.at - length, this.at);
  }

  text(): string {
    const block = this.block();
    return Buffer.from(block.buffer, block.byteOffset, block.byteLength).toString("utf8");
  }

  /** A nested message. */
  message(): ProtoReader {
    const length = this.uint();
    this.at += length;
    if (this.at > this.end) throw new ProtoError("message is cut short");
    return new ProtoReader(this.bytes, this.at - length, this.at);
  }

  /** One occurrence of a repeated uint32 field, packed or not, appended to `into`. */
  uints(into: number[]): void {
    if (this.wireType !== 2) {
      into.push(this.uint());
      return;
    }
    const list = this.message();
    while (list.at < list.end) into.push(list.uint());
  }

  /** Like `uints` for a list that comes packed in one piece, without an intermediate array. */
  uintArray(before: Uint32Array): Uint32Array {
    const more: number[] = [];
    let list: Uint32Array;
    if (this.wireType === 2) {
      const reader = this.message();
      const { bytes, end } = reader;
      let count = 0;
      for (let i = reader.at; i < end; i++) if (bytes[i]! < 0x80) count++;
      list = new Uint32Array(count);
      let at = reader.at;
      for (let i = 0; i < count; i++) {
        let byte = bytes[at++]!;
        let value = byte & 0x7f;
        for (let shift = 7; byte >= 0x80; shift += 7) {
          byte = bytes[at++]!;
          if (shift < 32) value |= (byte & 0x7f) << shift;
        }
        list[i] = value;
      }
    } else {
      this.uints(more);
      list = Uint32Array.from(more);
    }
    if (before.length === 0) return list;
    const joined = new Uint32Array(before.length + list.length);
    joined.set(before);
    joined.set(list, before.length);
    return joined;
  }

  skip(): void {
    if (this.wireType === 0) this.uint();
    else if (this.wireType === 1) this.double();
    else if (this.wireType === 2) this.block();
    else if (this.wireType === 5) this.float();
    else throw new ProtoError(`wire type ${this.wireType}`);
  }
}
