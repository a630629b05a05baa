import { FrameReader, unpadded } from "./frame-reader.ts";
import {
  ConnectionError,
  DEFAULT_MAX_FRAME,
  DEFAULT_WINDOW,
  ErrorCode,
  Flag,
  FrameType,
  MAX_WINDOW,
  OutBuffer,
  readUint32,
  Setting,
} from "./frames.ts";
import { HeaderBlockReader, type RequestHeaders } from "./header-block.ts";
import { HpackError } from "./hpack.ts";
import { ServerCall } from "./stream.ts";

/** The socket under a connection. */
export interface Transport {
  /** Writes what fits and returns how many bytes that were; below 0 when closed. */
  write(bytes: Uint8Array): number;
  /** Sends FIN after what was written. */
  end(): void;
  /** Closes at once (RST where the system allows). */
  destroy(): void;
}

/** What a connection tells the server above it. */
export interface ConnectionHandler {
  /** Some of a call's body arrived; look at `call.body`, `call.bodyLength` and `call.halfClosed`. */
  onBody(call: ServerCall): void;
  onHeaders(call: ServerCall): void;
  /** No stream is left on a connection that was told to go away. */
  onIdle(connection: Connection): void;
}

/** Window we grant for each stream and for the connection: requests are read at once, so it need not be tight. */
const RECEIVE_WINDOW = 1 << 24;
/** Unwritten bytes above which calls hold their messages back. */
const CONGESTED_BYTES = 1 << 20;

/** The server's side of one HTTP/2 connection (RFC 9113): frames, header compression, flow control both ways. */
export class Connection {
  readonly out = new OutBuffer();
  readonly calls = new Map<number, ServerCall>();
  /** What the peer lets us send on the whole connection, in bytes. */
  sendWindow = DEFAULT_WINDOW;
  initialSendWindow = DEFAULT_WINDOW;
  maxFrame = DEFAULT_MAX_FRAME;
  /** The socket does not take more at the moment. */
  congested = false;
  closed = false;
  private readonly headerBlocks = new HeaderBlockReader();
  private readonly reader = new FrameReader((type, flags, id, payload) => {
    if (!this.closed) this.frame(type, flags, id, payload);
  });
  private readonly waiting = new Set<ServerCall>();
  private going = false;
  private lastStream = 0;
  private consumed = 0;
  private flushing = false;

  constructor(
    private readonly transport: Transport,
    private readonly handler: ConnectionHandler,
  ) {
    this.out.frame(6, FrameType.SETTINGS, 0, 0);
    const at = this.out.take(2);
    this.out.bytes[at] = 0;
    this.out.bytes[at + 1] = Setting.INITIAL_WINDOW_SIZE;
    this.out.uint32(RECEIVE_WINDOW);
    this.windowUpdate(0, RECEIVE_WINDOW - DEFAULT_WINDOW);
    this.flushSoon();
  }

  /** Bytes from the socket, valid during the call. */
  receive(chunk: Uint8Array): void {
    if (this.closed) return;
    try {
      this.reader.push(chunk);
    } catch (error) {
      if (error instanceof HpackError) this.fail(ErrorCode.COMPRESSION_ERROR, error.message);
      else if (error instanceof ConnectionError) this.fail(error.code, error.message);
      else throw error;
    }
  }

  /** The socket can take more. */
  drained(): void {
    this.flush();
    if (!this.congested) for (const call of [...this.waiting]) call.pump();
  }

  /** The socket is gone: every call ends. */
  lost(): void {
    this.closed = true;
    for (const call of [...this.calls.values()]) call.cancelled();
    this.calls.clear();
    this.waiting.clear();
  }

  /** Writes the collected frames once the code that runs now is done, or at once when they pile up. */
  flushSoon(): void {
    if (this.out.length > CONGESTED_BYTES && !this.congested) this.flush();
    if (this.flushing) return;
    this.flushing = true;
    queueMicrotask(() => this.flush());
  }

  flush(): void {
    this.flushing = false;
    if (this.closed || this.out.length === 0) return;
    const written = this.transport.write(this.out.bytes.subarray(this.out.start, this.out.end));
    if (written < 0) return;
    this.out.drop(written);
    this.congested = this.out.length > CONGESTED_BYTES;
  }

  wait(call: ServerCall): void {
    this.waiting.add(call);
  }

  waited(call: ServerCall): void {
    this.waiting.delete(call);
  }

  /** Forgets a call whose trailers were sent. */
  endStream(call: ServerCall): void {
    this.waiting.delete(call);
    if (!call.halfClosed) this.rst(call.id, ErrorCode.NO_ERROR);
    this.forget(call.id);
  }

  resetStream(id: number, code: number): void {
    this.rst(id, code);
    this.forget(id);
  }

  /** Announces the end: open calls go on, new ones are refused, and the socket closes when none is left. */
  goAway(code: number = ErrorCode.NO_ERROR): void {
    this.going = true;
    this.goAwayFrame(code, "");
    if (this.calls.size === 0) this.handler.onIdle(this);
  }

  /** Sends FIN. */
  end(): void {
    this.flush();
    this.transport.end();
  }

  /** Cuts the connection without any goodbye. */
  destroy(): void {
    this.flush();
    this.transport.destroy();
    this.lost();
  }

  private forget(id: number): void {
    const call = this.calls.get(id);
    if (!call) return;
    this.calls.delete(id);
    this.waiting.delete(call);
    if (this.going && this.calls.size === 0) this.handler.onIdle(this);
  }

  private frame(type: number, flags: number, id: number, payload: Uint8Array): void {
    if (this.headerBlocks.open && type !== FrameType.CONTINUATION)
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "header block interrupted");
    switch (type) {
      case FrameType.DATA:
        this.data(flags, id, payload);
        return;
      case FrameType.HEADERS:
      case FrameType.CONTINUATION: {
        const headers =
          type === FrameType.HEADERS
            ? this.headerBlocks.begin(flags, id, payload)
            : this.headerBlocks.continue(flags, id, payload);
        if (headers) this.headers(headers);
        return;
      }
      case FrameType.RST_STREAM: {
        const call = this.calls.get(id);
        this.forget(id);
        call?.cancelled();
        return;
      }
      case FrameType.SETTINGS:
        this.settings(flags, payload);
        return;
      case FrameType.PING:
        if (payload.length !== 8) throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "PING length");
        if (flags & Flag.ACK) return;
        this.out.frame(8, FrameType.PING, Flag.ACK, 0);
        this.out.append(payload);
        this.flushSoon();
        return;
      case FrameType.WINDOW_UPDATE:
        this.windowUpdated(id, payload);
        return;
      case FrameType.PUSH_PROMISE:
        throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "PUSH_PROMISE from a client");
      default:
        // GOAWAY needs no answer, PRIORITY has no meaning here, unknown types must be ignored.
        return;
    }
  }

  private data(flags: number, id: number, payload: Uint8Array): void {
    this.consumed += payload.length;
    if (this.consumed >= RECEIVE_WINDOW / 4) {
      this.windowUpdate(0, this.consumed);
      this.consumed = 0;
    }
    const call = this.calls.get(id);
    if (!call) return;
    let body = payload;
    if (flags & Flag.PADDED) body = unpadded(payload);
    if (payload.length > 0 && !(flags & Flag.END_STREAM)) this.windowUpdate(id, payload.length);
    call.append(body);
    if (flags & Flag.END_STREAM) call.halfClosed = true;
    this.handler.onBody(call);
  }

  private headers({ id, ended, headers }: RequestHeaders): void {
    const known = this.calls.get(id);
    if (known) {
      // Trailers of a request: only its end matters.
      if (ended) known.halfClosed = true;
      this.handler.onBody(known);
      return;
    }
    if (id <= this.lastStream) return;
    this.lastStream = id;
    if (this.going) {
      this.rst(id, ErrorCode.REFUSED_STREAM);
      return;
    }
    const call = new ServerCall(this, id, headers);
    call.halfClosed = ended;
    this.calls.set(id, call);
    this.handler.onHeaders(call);
    if (ended && call.open) this.handler.onBody(call);
  }

  private settings(flags: number, payload: Uint8Array): void {
    if (flags & Flag.ACK) return;
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      const key = (payload[at]! << 8) | payload[at + 1]!;
      const value = readUint32(payload, at + 2);
      if (key === Setting.INITIAL_WINDOW_SIZE) {
        if (value > MAX_WINDOW) throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, "window too large");
        const change = value - this.initialSendWindow;
        this.initialSendWindow = value;
        for (const call of this.calls.values()) call.sendWindow += change;
      } else if (key === Setting.MAX_FRAME_SIZE) this.maxFrame = Math.min(value, 1 << 20);
    }
    this.out.frame(0, FrameType.SETTINGS, Flag.ACK, 0);
    this.flushSoon();
    for (const call of [...this.waiting]) call.pump();
  }

  private windowUpdated(id: number, payload: Uint8Array): void {
    if (payload.length !== 4) throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "WINDOW_UPDATE length");
    const increment = readUint32(payload, 0) & MAX_WINDOW;
    if (increment === 0) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "window increment 0");
    if (id === 0) {
      this.sendWindow += increment;
      if (this.sendWindow > MAX_WINDOW) throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, "window overflow");
      for (const call of [...this.waiting]) call.pump();
      return;
    }
    const call = this.calls.get(id);
    if (!call) return;
    call.sendWindow += increment;
    if (this.waiting.has(call)) call.pump();
  }

  private windowUpdate(id: number, increment: number): void {
    this.out.frame(4, FrameType.WINDOW_UPDATE, 0, id);
    this.out.uint32(increment);
    this.flushSoon();
  }

  private rst(id: number, code: number): void {
    this.out.frame(4, FrameType.RST_STREAM, 0, id);
    this.out.uint32(code);
    this.flushSoon();
  }

  private goAwayFrame(code: number, message: string): void {
    const text = Buffer.from(message);
    this.out.frame(8 + text.length, FrameType.GOAWAY, 0, 0);
    this.out.uint32(this.lastStream);
    this.out.uint32(code);
    this.out.append(text);
    this.flushSoon();
  }

  private fail(code: number, message: string): void {
    this.goAwayFrame(code, message);
    this.flush();
    this.transport.end();
    this.lost();
  }
}
