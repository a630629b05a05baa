import {
  ConnectionError,
  DEFAULT_MAX_FRAME,
  ErrorCode,
  FRAME_HEADER_BYTES,
  MAX_WINDOW,
  PREFACE,
  readUint32,
} from "./frames.ts";

/** Takes a frame; the payload is a view that is valid only during the call. */
export type FrameHandler = (type: number, flags: number, id: number, payload: Uint8Array) => void;

const EMPTY = new Uint8Array(0);

/** Checks the client's preface and cuts what the socket brings into frames, however it is split. Throws ConnectionError. */
export class FrameReader {
  private rest: Uint8Array = EMPTY;
  private prefaceSeen = false;

  constructor(private readonly onFrame: FrameHandler) {}

  push(chunk: Uint8Array): void {
    let bytes = chunk;
    if (this.rest.length > 0) {
      bytes = new Uint8Array(this.rest.length + chunk.length);
      bytes.set(this.rest);
      bytes.set(chunk, this.rest.length);
    }
    const used = this.parse(bytes);
    // A copy: the socket reuses its buffer.
    this.rest = used === bytes.length ? EMPTY : bytes.slice(used);
  }

  private parse(bytes: Uint8Array): number {
    let at = 0;
    if (!this.prefaceSeen) {
      const length = Math.min(bytes.length, PREFACE.length);
      for (let i = 0; i < length; i++)
        if (bytes[i] !== PREFACE[i]) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "not an HTTP/2 preface");
      if (bytes.length < PREFACE.length) return 0;
      this.prefaceSeen = true;
      at = PREFACE.length;
    }
    while (bytes.length - at >= FRAME_HEADER_BYTES) {
      const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
      if (length > DEFAULT_MAX_FRAME) throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "frame too large");
      if (bytes.length - at < FRAME_HEADER_BYTES + length) break;
      const type = bytes[at + 3]!;
      const flags = bytes[at + 4]!;
      const id = readUint32(bytes, at + 5) & MAX_WINDOW;
      at += FRAME_HEADER_BYTES + length;
      this.onFrame(type, flags, id, bytes.subarray(at - length, at));
    }
    return at;
  }
}

/** Payload of a padded frame without its padding. */
export function unpadded(payload: Uint8Array): Uint8Array {
  const end = payload.length - (payload[0] ?? payload.length);
  if (end < 1) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "padding longer than the frame");
  return payload.subarray(1, end);
}
