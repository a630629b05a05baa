/** One running call of the framing channel: one HTTP/2 stream, read message by message. */
import { ErrorCode, Flag, FrameType } from "../http2/frames.ts";
import type { OutBuffer } from "../http2/out-buffer.ts";
import type { CallOptions, StreamCall, StreamHandler } from "./channel.ts";
import type { FramingConnection } from "./framing-connection.ts";
import { errorOfHttpStatus, errorOfReset, errorOfTrailers } from "./framing-status.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";
import { HeldBytes } from "./held-bytes.ts";
import { MessageReader, type MessageSink } from "./message-reader.ts";

/** Flow-control window of each stream: what a paused stream may hold, and enough for full speed on a fast network. */
export const STREAM_WINDOW = 1 << 20;
const PREFIX = 5;
const NO_TRAILERS: ReadonlyMap<string, string> = new Map();

export interface CallSetup {
  readonly path: string;
  readonly request: Uint8Array;
  readonly handler: StreamHandler;
  readonly options: CallOptions;
  /** Metadata, already checked. */
  readonly headers: Readonly<Record<string, string>>;
  readonly maxReceiveBytes: number;
}

export class FramingCall implements StreamCall, MessageSink {
  /** The connection that the call waits for or runs on. Set by the connection, as `id` and `sendWindow` are. */
  connection: FramingConnection | undefined;
  /** HTTP/2 stream; 0 until the call is sent. */
  id = 0;
  /** What the peer lets us send on this stream, in bytes; below 0 after it made its windows smaller. */
  sendWindow = 0;
  hasEnded = false;
  /** `performance.now()` of the deadline. */
  readonly deadline: number;
  private paused = false;
  /** Messages were given out and no idle came since. */
  private touched = false;
  private readonly reader: MessageReader;
  private readonly timer: ReturnType<typeof setTimeout> | undefined;
  private readonly onAbort: (() => void) | undefined;
  /** Bytes of the request that were sent, counted from its prefix on. */
  private sent = -PREFIX;
  /** What the peer may still send on this stream. */
  private window = STREAM_WINDOW;
  /** Bytes that were read and not yet given back to the peer's window. */
  private credit = 0;
  /** What came while the call was paused; undefined when nothing did. */
  private held: HeldBytes | undefined;
  private answered = false;
  /** Headers that brought a status although the stream went on. */
  private early: ReadonlyMap<string, string> | undefined;
  /** The stream is over, with this status, once what is held was read. */
  private last: { readonly error: GrpcError | undefined } | undefined;

  constructor(readonly setup: CallSetup) {
    const { options } = setup;
    this.reader = new MessageReader(setup.maxReceiveBytes, this);
    this.deadline =
      options.deadlineMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + options.deadlineMs;
    if (options.deadlineMs !== undefined)
      this.timer = setTimeout(
        () => this.fail(new GrpcError(GrpcStatus.DEADLINE_EXCEEDED, "deadline exceeded")),
        Math.min(options.deadlineMs, 0x7fffffff),
      );
    if (options.signal !== undefined) {
      this.onAbort = () => this.cancel();
      options.signal.addEventListener("abort", this.onAbort);
    }
  }

  cancel(): void {
    this.fail(new GrpcError(GrpcStatus.CANCELLED, "cancelled by the client"));
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    // Not at once: who resumes may be inside a callback of this very call.
    queueMicrotask(() => this.readHeld());
  }

  /** Ends the call here and resets the stream at the peer, if it is open. */
  fail(error: GrpcError, code: number = ErrorCode.CANCEL): void {
    if (this.hasEnded) return;
    this.connection?.abandon(this, code);
    this.finish(error);
  }

  /** As `fail`, but not before the caller of `serverStream` has its call. */
  failLater(error: GrpcError): void {
    queueMicrotask(() => this.fail(error));
  }

  /** True while a part of the request is unsent. */
  get isSending(): boolean {
    return this.sent < this.setup.request.length;
  }

  /** Writes one DATA frame of the request, as far as `limit` and the stream's window go. Returns its size; 0 when nothing may go. */
  sendData(out: OutBuffer, limit: number): number {
    const { request } = this.setup;
    const size = Math.min(request.length - this.sent, this.sendWindow, limit);
    if (size <= 0) return 0;
    this.sendWindow -= size;
    const to = this.sent + size;
    out.frame(size, FrameType.DATA, to === request.length ? Flag.END_STREAM : 0, this.id);
    // The prefix: no compression, then the length in four bytes.
    for (; this.sent < 0 && this.sent < to; this.sent++) {
      const at = out.take(1);
      out.bytes[at] = this.sent === -PREFIX ? 0 : request.length >>> (-8 * (this.sent + 1));
    }
    if (to > this.sent)
      out.append(this.sent === 0 && to === request.length ? request : request.subarray(this.sent, to));
    this.sent = to;
    return size;
  }

  /** A header block of the stream. */
  takeHeaders(headers: ReadonlyMap<string, string>, ended: boolean): void {
    if (!this.answered && headers.get(":status")?.startsWith("1") && !ended) return;
    const first = !this.answered;
    this.answered = true;
    if (ended && (!first || headers.has("grpc-status"))) {
      this.endStream(errorOfTrailers(headers));
      return;
    }
    const status = Number(headers.get(":status"));
    if (first && headers.has("grpc-status")) this.early = headers;
    else if (!first) this.fail(new GrpcError(GrpcStatus.INTERNAL, "headers in the middle of the stream"));
    else if (status !== 200) this.fail(errorOfHttpStatus(status));
    else if (ended) this.endStream(new GrpcError(GrpcStatus.INTERNAL, "the stream ended without a status"));
    else if (!headers.get("content-type")?.startsWith("application/grpc"))
      this.fail(new GrpcError(GrpcStatus.UNKNOWN, "the reply is not gRPC"));
  }

  /**
   * Payload of a DATA frame, `bytes[start .. end)`, which counts `size` bytes with its padding. `last`: no more comes in this read of the
   * socket. Then the call is idle at once, while all that it uses is in the processor's caches, and its client waits for nobody else's.
   */
  takeData(bytes: Uint8Array, start: number, end: number, size: number, last: boolean): void {
    this.window -= size;
    if (this.window < 0) {
      this.fail(new GrpcError(GrpcStatus.INTERNAL, "more bytes than were asked for"), ErrorCode.FLOW_CONTROL_ERROR);
      return;
    }
    if (!this.answered) {
      this.fail(new GrpcError(GrpcStatus.INTERNAL, "data before headers"), ErrorCode.PROTOCOL_ERROR);
      return;
    }
    this.credit += size - (end - start);
    if (this.paused || this.held !== undefined) {
      this.held ??= new HeldBytes();
      this.held.add(bytes, start, end);
      return;
    }
    const waiting = this.touched;
    const at = this.readMessages(bytes, start, end);
    if (at < end && !this.hasEnded) {
      this.held = new HeldBytes();
      this.held.add(bytes, at, end);
    }
    if (!this.touched) return;
    if (last) this.idle();
    else if (!waiting) this.connection?.touched.push(this);
  }

  /** The peer reset the stream. */
  takeReset(code: number): void {
    this.finish(errorOfReset(code));
  }

  /** The stream ended with a DATA frame. */
  takeEnd(): void {
    if (!this.hasEnded) this.endStream(errorOfTrailers(this.early ?? NO_TRAILERS));
  }

  private endStream(error: GrpcError | undefined): void {
    this.connection?.streamOver(this);
    this.last = { error };
    if (!this.paused && this.held === undefined) this.endInOrder();
    else this.connection?.finishing.add(this);
  }

  takeMessage(bytes: Uint8Array, start: number, end: number): boolean {
    this.touched = true;
    this.setup.handler.onMessage(bytes, start, end);
    return !this.paused && !this.hasEnded;
  }

  /** No more messages come in this read of the socket. */
  idle(): void {
    if (!this.touched) return;
    this.touched = false;
    if (this.hasEnded) return;
    try {
      this.setup.handler.onIdle?.();
    } catch {
      this.fail(new GrpcError(GrpcStatus.INTERNAL, "the receiver of the messages failed"));
    }
  }

  /** Reads until the end or until the call is paused; gives back what was read to the peer's window. */
  private readMessages(bytes: Uint8Array, start: number, end: number): number {
    const { reader } = this;
    let at = end;
    try {
      at = reader.read(bytes, start, end);
    } catch {
      this.fail(new GrpcError(GrpcStatus.INTERNAL, "the receiver of the messages failed"));
    }
    if (reader.problem !== undefined) this.fail(reader.problem);
    this.credit += at - start;
    if (this.credit >= STREAM_WINDOW / 4 && !this.hasEnded && this.last === undefined) {
      this.connection?.sender.windowUpdate(this.id, this.credit);
      this.window += this.credit;
      this.credit = 0;
    }
    return at;
  }

  private readHeld(): void {
    if (this.paused || this.hasEnded) return;
    const { held } = this;
    if (held !== undefined) {
      held.start = this.readMessages(held.bytes, held.start, held.end);
      if (held.start === held.end) this.held = undefined;
      this.idle();
    }
    if (!this.paused && this.held === undefined && this.last !== undefined) this.endInOrder();
  }

  private endInOrder(): void {
    if (this.last === undefined) return;
    const { error } = this.last;
    if (error === undefined && this.reader.insideMessage)
      this.finish(new GrpcError(GrpcStatus.INTERNAL, "the stream ended inside a message"));
    else this.finish(error);
  }

  private finish(error: GrpcError | undefined): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.held = undefined;
    clearTimeout(this.timer);
    if (this.onAbort !== undefined) this.setup.options.signal?.removeEventListener("abort", this.onAbort);
    this.connection?.finishing.delete(this);
    try {
      this.setup.handler.onEnd(error);
    } catch (problem) {
      // Other calls may be ending in the same loop: they must not miss their end.
      setImmediate(() => {
        throw problem;
      });
    }
  }
}
