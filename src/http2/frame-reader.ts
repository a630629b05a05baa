import {
  ConnectionError,
  DEFAULT_MAX_FRAME,
  ErrorCode,
  FRAME_HEADER_BYTES,
  FrameType,
  MAX_WINDOW,
  readUint32,
} from "./frames.ts";

/** Streams whose last frames are told apart; of more, some are taken for each other. */
const SLOTS = 2048;
/** The ids of one side's streams are 2 apart. */
const slotOf = (id: number): number => (id >>> 1) & (SLOTS - 1);

/**
 * Takes a frame. Its payload is `bytes[start .. end)`, valid only during the call: frames are read where they lie, because a
 * view for each would cost more than the rest of the reading. Returns false to stop the reading for good.
 */
export type FrameHandler = (
  type: number,
  flags: number,
  id: number,
  bytes: Uint8Array,
  start: number,
  end: number,
) => boolean;

/** Cuts what the socket brings into frames, however it is split. Throws ConnectionError. */
export class FrameReader {
  private prefaceSeen = 0;
  /** A frame of which a part has come. */
  private rest: Uint8Array = new Uint8Array(FRAME_HEADER_BYTES);
  private restLength = 0;
  /** Where in the chunk the payload of the last whole DATA frame of a stream begins, by the stream's slot. */
  private readonly lastData = new Uint32Array(SLOTS);

  /** `preface` is what must come before the first frame: a client's preface, or nothing from a server. */
  constructor(
    private readonly onFrame: FrameHandler,
    private readonly preface: Uint8Array = new Uint8Array(0),
  ) {}

  push(chunk: Uint8Array): void {
    let at = this.prefaceSeen < this.preface.length ? this.readPreface(chunk) : 0;
    const end = chunk.length;
    if (this.restLength > 0) {
      at = this.complete(chunk, at);
      if (at < 0) return;
    }
    this.findLast(chunk, at);
    while (end - at >= FRAME_HEADER_BYTES) {
      const payload = at + FRAME_HEADER_BYTES;
      const next = payload + payloadLength(chunk, at);
      if (next > end) break;
      const id = readUint32(chunk, at + 5) & MAX_WINDOW;
      if (!this.onFrame(chunk[at + 3]!, chunk[at + 4]!, id, chunk, payload, next)) return;
      at = next;
    }
    if (at < end) this.keep(chunk, at, end);
  }

  /**
   * Whether the DATA frame of stream `id` with its payload at `start`, which is being given out, is the last one of its stream that lies
   * whole in the chunk. A guess to go by, not to rely on: it is wrong now and then with thousands of streams, for padded frames, and for
   * those that two chunks share.
   */
  isLastData(id: number, start: number): boolean {
    return this.lastData[slotOf(id)] === start;
  }

  /** Hops from frame to frame ahead of the reading, for `isLastData`. */
  private findLast(chunk: Uint8Array, from: number): void {
    const { lastData } = this;
    for (let at = from; chunk.length - at >= FRAME_HEADER_BYTES; ) {
      const payload = at + FRAME_HEADER_BYTES;
      const next = payload + ((chunk[at]! << 16) | (chunk[at + 1]! << 8) | chunk[at + 2]!);
      if (next > chunk.length) return;
      if (chunk[at + 3] === FrameType.DATA) lastData[slotOf(readUint32(chunk, at + 5) & MAX_WINDOW)] = payload;
      at = next;
    }
  }

  /** Adds to the frame that has begun, and gives it out once it is whole. Returns where the next begins; -1 to read no more. */
  private complete(chunk: Uint8Array, from: number): number {
    let at = from;
    if (this.restLength < FRAME_HEADER_BYTES) {
      const to = Math.min(chunk.length, at + FRAME_HEADER_BYTES - this.restLength);
      this.keep(chunk, at, to);
      at = to;
      if (this.restLength < FRAME_HEADER_BYTES) return -1;
    }
    const whole = FRAME_HEADER_BYTES + payloadLength(this.rest, 0);
    const to = Math.min(chunk.length, at + whole - this.restLength);
    this.keep(chunk, at, to);
    if (this.restLength < whole) return -1;
    this.restLength = 0;
    const { rest } = this;
    const id = readUint32(rest, 5) & MAX_WINDOW;
    return this.onFrame(rest[3]!, rest[4]!, id, rest, FRAME_HEADER_BYTES, whole) ? to : -1;
  }

  /** Copies, because the socket may reuse its buffer. */
  private keep(chunk: Uint8Array, from: number, to: number): void {
    const length = this.restLength + to - from;
    if (length > this.rest.length) {
      const grown = new Uint8Array(FRAME_HEADER_BYTES + DEFAULT_MAX_FRAME);
      grown.set(this.rest.subarray(0, this.restLength));
      this.rest = grown;
    }
    this.rest.set(chunk.subarray(from, to), this.restLength);
    this.restLength = length;
  }

  private readPreface(chunk: Uint8Array): number {
    const { preface } = this;
    let at = 0;
    while (this.prefaceSeen < preface.length && at < chunk.length)
      if (chunk[at++] !== preface[this.prefaceSeen++])
        throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "not an HTTP/2 preface");
    return at;
  }
}

/** Length of the payload of the frame whose header begins at `at`. */
function payloadLength(bytes: Uint8Array, at: number): number {
  const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
  if (length > DEFAULT_MAX_FRAME) throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "frame too large");
  return length;
}

/** Bytes of padding at the end of a padded frame with the payload `bytes[start .. end)`; the first byte tells them. */
export function paddingOf(bytes: Uint8Array, start: number, end: number): number {
  const padding = start < end ? bytes[start]! : 0;
  if (start + 1 + padding > end) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "padding longer than the frame");
  return padding;
}
