/** What a peer sends, frame by frame, checked for what every HTTP/2 endpoint has to refuse (RFC 9113, section 6). */
import { FrameReader, paddingOf } from "./frame-reader.ts";
import {
  ConnectionError,
  ErrorCode,
  Flag,
  FrameType,
  MAX_WINDOW,
  readIncrement,
  readSettings,
  readUint32,
} from "./frames.ts";
import { type HeaderBlock, HeaderBlockReader } from "./header-block.ts";

export const PING_BYTES = 8;

/** Takes the frames of one connection, in order. Bytes are valid only during the call. What it throws leaves `push`. */
export interface IncomingHandler {
  /** DATA: the payload is `bytes[start .. end)`; `size` counts for flow control, padding included. */
  onData(id: number, bytes: Uint8Array, start: number, end: number, size: number, ended: boolean): void;
  onHeaders(block: HeaderBlock): void;
  onReset(id: number, code: number): void;
  onSetting(key: number, value: number): void;
  /** All settings of a frame were given: it must be acknowledged. */
  onSettingsEnd(): void;
  /** A ping to be answered with the same bytes. */
  onPing(payload: Uint8Array): void;
  onPingAnswer(): void;
  onGoAway(lastId: number, code: number): void;
  /** `id` is 0 for the whole connection. */
  onWindowUpdate(id: number, increment: number): void;
}

export class IncomingFrames {
  private readonly headerBlocks = new HeaderBlockReader();
  private readonly reader: FrameReader;
  private stopped = false;
  private settingsSeen = false;

  /** `preface` is what must come before the first frame: a client's preface, or nothing from a server. */
  constructor(
    private readonly handler: IncomingHandler,
    preface?: Uint8Array,
  ) {
    this.reader = new FrameReader((type, flags, id, bytes, start, end) => {
      this.frame(type, flags, id, bytes, start, end);
      return !this.stopped;
    }, preface);
  }

  /** Bytes from the socket. Throws ConnectionError: then the connection has to end. */
  push(chunk: Uint8Array): void {
    if (!this.stopped) this.reader.push(chunk);
  }

  /** As `FrameReader.isLastData`. */
  isLastData(id: number, start: number): boolean {
    return this.reader.isLastData(id, start);
  }

  /** Gives out no more frames, not even of the chunk that is being read. */
  stop(): void {
    this.stopped = true;
  }

  private frame(type: number, flags: number, id: number, bytes: Uint8Array, start: number, end: number): void {
    if (!this.settingsSeen && type !== FrameType.SETTINGS)
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "no SETTINGS at first");
    if (this.headerBlocks.open && type !== FrameType.CONTINUATION)
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "header block interrupted");
    switch (type) {
      case FrameType.DATA: {
        const ended = (flags & Flag.END_STREAM) !== 0;
        if (flags & Flag.PADDED)
          this.handler.onData(id, bytes, start + 1, end - paddingOf(bytes, start, end), end - start, ended);
        else this.handler.onData(id, bytes, start, end, end - start, ended);
        return;
      }
      case FrameType.HEADERS:
      case FrameType.CONTINUATION: {
        const block =
          type === FrameType.HEADERS
            ? this.headerBlocks.begin(flags, id, bytes, start, end)
            : this.headerBlocks.continue(flags, id, bytes, start, end);
        if (block !== undefined) this.handler.onHeaders(block);
        return;
      }
      case FrameType.RST_STREAM:
        this.checkLength(end - start === 4, "RST_STREAM");
        this.handler.onReset(id, readUint32(bytes, start));
        return;
      case FrameType.SETTINGS:
        this.settingsSeen = true;
        if (flags & Flag.ACK) return;
        readSettings(bytes.subarray(start, end), (key, value) => this.handler.onSetting(key, value));
        this.handler.onSettingsEnd();
        return;
      case FrameType.PING:
        this.checkLength(end - start === PING_BYTES, "PING");
        if (flags & Flag.ACK) this.handler.onPingAnswer();
        else this.handler.onPing(bytes.subarray(start, end));
        return;
      case FrameType.GOAWAY:
        this.checkLength(end - start >= 8, "GOAWAY");
        this.handler.onGoAway(readUint32(bytes, start) & MAX_WINDOW, readUint32(bytes, start + 4));
        return;
      case FrameType.WINDOW_UPDATE:
        this.handler.onWindowUpdate(id, readIncrement(bytes.subarray(start, end)));
        return;
      case FrameType.PUSH_PROMISE:
        // Servers may not get it; clients switch it off.
        throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "PUSH_PROMISE");
      default:
        // PRIORITY has no meaning any more; unknown types must be ignored.
        return;
    }
  }

  private checkLength(right: boolean, what: string): void {
    if (!right) throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, `${what} length`);
  }
}
