/** Frame types, flags and error codes of HTTP/2 (RFC 9113). */
export const FrameType = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const Flag = { END_STREAM: 1, ACK: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 32 } as const;

export const ErrorCode = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  SETTINGS_TIMEOUT: 4,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 10,
  ENHANCE_YOUR_CALM: 11,
} as const;

export const Setting = { HEADER_TABLE_SIZE: 1, INITIAL_WINDOW_SIZE: 4, MAX_FRAME_SIZE: 5 } as const;

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
export const FRAME_HEADER_BYTES = 9;
export const DEFAULT_WINDOW = 65_535;
export const DEFAULT_MAX_FRAME = 16_384;
export const MAX_WINDOW = 0x7fffffff;

/** A breach of the protocol that ends the connection with this code. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/** Bytes waiting for the socket: grows as needed, written from `start`. */
export class OutBuffer {
  bytes = new Uint8Array(32_768);
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
    if (this.start === this.end) this.start = this.end = 0;
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
}

/** Big-endian 32-bit number without sign. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
}
