/** The sending side of a framing connection: frames, and request bodies as far as flow control and the socket take them. */
import {
  ConnectionError,
  DEFAULT_MAX_FRAME,
  DEFAULT_WINDOW,
  ErrorCode,
  FrameType,
  MAX_WINDOW,
  PREFACE,
} from "../http2/frames.ts";
import { PING_BYTES } from "../http2/incoming.ts";
import { OutBuffer } from "../http2/out-buffer.ts";
import type { FramingCall } from "./framing-call.ts";
import type { FramingSocket } from "./framing-socket.ts";

/** Unwritten bytes above which request bodies wait. */
const CONGESTED_BYTES = 1 << 20;
/** Unwritten bytes at which a peer that does not read is given up. */
const MAX_UNWRITTEN_BYTES = 64 << 20;
/** Frames need not be as large as a peer allows: others want to get in between. */
const MAX_SENT_FRAME = 1 << 18;

export interface SenderEvents {
  /** Frames are about to be written: the moment to add those that waited for it. */
  beforeFlush(): void;
  /** Too much is unwritten. */
  onStuck(): void;
}

export class FramingSender {
  /** Frames to write; `flushSoon` after adding some. */
  readonly out = new OutBuffer();
  /** Calls with a request body to send. */
  readonly blocked = new Set<FramingCall>();
  maxFrame = DEFAULT_MAX_FRAME;
  private window = DEFAULT_WINDOW;
  private flushing = false;
  private closed = false;

  constructor(
    private readonly socket: FramingSocket,
    private readonly events: SenderEvents,
  ) {}

  /** The beginning of every connection: our preface and settings. */
  greet(settings: readonly (readonly [key: number, value: number])[]): void {
    this.out.append(PREFACE);
    this.out.settings(settings);
    this.flushSoon();
  }

  headers(id: number, block: Uint8Array): void {
    this.out.headers(id, block, false, this.maxFrame);
    this.flushSoon();
  }

  windowUpdate(id: number, increment: number): void {
    this.out.windowUpdate(id, increment);
    this.flushSoon();
  }

  rstStream(id: number, code: number): void {
    this.out.rstStream(id, code);
    this.flushSoon();
  }

  ping(payload: Uint8Array, flags: number): void {
    this.out.frame(PING_BYTES, FrameType.PING, flags, 0);
    this.out.append(payload);
    this.flushSoon();
  }

  /** The peer's limit of a frame's size. */
  setMaxFrame(bytes: number): void {
    this.maxFrame = Math.min(bytes, MAX_SENT_FRAME);
  }

  /** The peer takes more on the whole connection. Throws ConnectionError. */
  addWindow(increment: number): void {
    this.window += increment;
    if (this.window > MAX_WINDOW) throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, "window overflow");
    if (this.blocked.size > 0) this.flushSoon();
  }

  /** Writes once the code that runs now is done. */
  flushSoon(): void {
    if (this.flushing) return;
    this.flushing = true;
    queueMicrotask(() => this.flush());
  }

  flush(): void {
    this.flushing = false;
    if (this.closed) return;
    this.events.beforeFlush();
    do {
      this.addBodies();
      this.write();
    } while (this.out.length === 0 && this.canSendBodies());
    if (this.out.length > MAX_UNWRITTEN_BYTES) this.events.onStuck();
  }

  /** Writes what is there and closes. */
  end(): void {
    this.closed = true;
    this.write();
    this.socket.end();
  }

  destroy(): void {
    this.closed = true;
    this.socket.destroy();
  }

  private write(): void {
    const { out } = this;
    if (out.length === 0) return;
    const written = this.socket.write(out.bytes.subarray(out.start, out.end));
    if (written > 0) out.drop(written);
  }

  /** Adds what flow control lets through, a frame of each call in turn, until enough waits for the socket. */
  private addBodies(): void {
    let going = this.blocked.size > 0;
    while (going) {
      going = false;
      for (const call of this.blocked) {
        if (this.out.length > CONGESTED_BYTES) return;
        const size = call.sendData(this.out, Math.min(this.window, this.maxFrame));
        this.window -= size;
        if (!call.isSending) this.blocked.delete(call);
        else if (size > 0) going = true;
      }
    }
  }

  private canSendBodies(): boolean {
    if (this.window > 0) for (const call of this.blocked) if (call.sendWindow > 0) return true;
    return false;
  }
}
