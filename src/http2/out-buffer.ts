/** HTTP/2 frames on their way to the socket (RFC 9113, sections 4 and 6). */
import { Flag, FRAME_HEADER_BYTES, FrameType } from "./frames.ts";

const INITIAL_BYTES = 32_768;
const KEPT_BYTES = 1 << 18;

/** Bytes waiting for the socket: grows as needed, written from `start`. */
export class OutBuffer {
  bytes = new Uint8Array(INITIAL_BYTES);
  start = 0;
  end = 0;

  get length(): number {
    return this.end - this.start;
  }

  /** Makes room for `count` more bytes and returns where they go; the caller fills them all. */
  take(count: number): number {
    if (this.end + count > this.bytes.length) this.grow(count);
    const at = this.end;
    this.end += count;
    return at;
  }

  private grow(count: number): void {
    const pending = this.length;
    let size = this.bytes.length;
    while (size < pending + count) size *= 2;
    const bytes = size === this.bytes.length ? this.bytes : new Uint8Array(size);
    bytes.set(this.bytes.subarray(this.start, this.end));
    this.bytes = bytes;
    this.start = 0;
    this.end = pending;
  }

  /** Marks `count` bytes as written. */
  drop(count: number): void {
    this.start += count;
    if (this.start !== this.end) return;
    this.start = this.end = 0;
    // A large request must not leave its buffer behind on every connection.
    if (this.bytes.length > KEPT_BYTES) this.bytes = new Uint8Array(INITIAL_BYTES);
  }

  /** Appends a frame header and returns where the payload goes (not yet reserved). */
  frame(length: number, type: number, flags: number, streamId: number): void {
    const at = this.take(FRAME_HEADER_BYTES);
    const b = this.bytes;
    b[at] = length >>> 16;
    b[at + 1] = length >>> 8;
    b[at + 2] = length;
    b[at + 3] = type;
    b[at + 4] = flags;
    b[at + 5] = streamId >>> 24;
    b[at + 6] = streamId >>> 16;
    b[at + 7] = streamId >>> 8;
    b[at + 8] = streamId;
  }

  append(bytes: Uint8Array): void {
    const at = this.take(bytes.length);
    this.bytes.set(bytes, at);
  }

  uint32(value: number): void {
    const at = this.take(4);
    const b = this.bytes;
    b[at] = value >>> 24;
    b[at + 1] = value >>> 16;
    b[at + 2] = value >>> 8;
    b[at + 3] = value;
  }

  /** A SETTINGS frame. */
  settings(values: readonly (readonly [key: number, value: number])[]): void {
    this.frame(values.length * 6, FrameType.SETTINGS, 0, 0);
    for (const [key, value] of values) {
      const at = this.take(2);
      this.bytes[at] = key >>> 8;
      this.bytes[at + 1] = key;
      this.uint32(value);
    }
  }

  windowUpdate(streamId: number, increment: number): void {
    this.frame(4, FrameType.WINDOW_UPDATE, 0, streamId);
    this.uint32(increment);
  }

  rstStream(streamId: number, code: number): void {
    this.frame(4, FrameType.RST_STREAM, 0, streamId);
    this.uint32(code);
  }

  goAway(lastStream: number, code: number, text: string): void {
    const bytes = Buffer.from(text);
    this.frame(8 + bytes.length, FrameType.GOAWAY, 0, 0);
    this.uint32(lastStream);
    this.uint32(code);
    this.append(bytes);
  }

  /** A whole header block: HEADERS, and CONTINUATION for what exceeds `maxFrame`. `ended` is END_STREAM. */
  headers(streamId: number, block: Uint8Array, ended: boolean, maxFrame: number): void {
    let flags: number = ended ? Flag.END_STREAM : 0;
    let type: number = FrameType.HEADERS;
    let at = 0;
    do {
      const size = Math.min(block.length - at, maxFrame);
      if (at + size === block.length) flags |= Flag.END_HEADERS;
      this.frame(size, type, flags, streamId);
      this.append(size === block.length ? block : block.subarray(at, at + size));
      at += size;
      flags = 0;
      type = FrameType.CONTINUATION;
    } while (at < block.length);
  }
}
