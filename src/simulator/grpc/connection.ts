import {
  ConnectionError,
  DEFAULT_MAX_FRAME,
  DEFAULT_WINDOW,
  ErrorCode,
  Flag,
  FrameType,
  MAX_WINDOW,
  PREFACE,
  Setting,
} from "../../http2/frames.ts";
import type { HeaderBlock } from "../../http2/header-block.ts";
import { IncomingFrames, type IncomingHandler, PING_BYTES } from "../../http2/incoming.ts";
import { OutBuffer } from "../../http2/out-buffer.ts";
import type { Peer, Transport } from "../net/listener.ts";
import { ServerCall } from "./stream.ts";

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
export class Connection implements IncomingHandler, Peer {
  readonly out = new OutBuffer();
  readonly calls = new Map<number, ServerCall>();
  /** What the peer lets us send on the whole connection, in bytes. */
  sendWindow = DEFAULT_WINDOW;
  initialSendWindow = DEFAULT_WINDOW;
  maxFrame = DEFAULT_MAX_FRAME;
  /** The socket does not take more at the moment. */
  congested = false;
  closed = false;
  private readonly incoming = new IncomingFrames(this, PREFACE);
  private readonly waiting = new Set<ServerCall>();
  private going = false;
  private lastStream = 0;
  private consumed = 0;
  private flushing = false;

  constructor(
    private readonly transport: Transport,
    private readonly handler: ConnectionHandler,
  ) {
    this.out.settings([[Setting.INITIAL_WINDOW_SIZE, RECEIVE_WINDOW]]);
    this.windowUpdate(0, RECEIVE_WINDOW - DEFAULT_WINDOW);
    this.flushSoon();
  }

  /** Bytes from the socket, valid during the call. */
  receive(chunk: Uint8Array): void {
    try {
      this.incoming.push(chunk);
    } catch (error) {
      if (error instanceof ConnectionError) this.fail(error.code, error.message);
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
    this.incoming.stop();
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

  onReset(id: number): void {
    const call = this.calls.get(id);
    this.forget(id);
    call?.cancelled();
  }

  onPing(payload: Uint8Array): void {
    this.out.frame(PING_BYTES, FrameType.PING, Flag.ACK, 0);
    this.out.append(payload);
    this.flushSoon();
  }

  onPingAnswer(): void {}

  onGoAway(): void {
    // A client that goes away ends its streams itself.
  }

  onData(id: number, bytes: Uint8Array, start: number, end: number, size: number, ended: boolean): void {
    this.consumed += size;
    if (this.consumed >= RECEIVE_WINDOW / 4) {
      this.windowUpdate(0, this.consumed);
      this.consumed = 0;
    }
    const call = this.calls.get(id);
    if (!call) return;
    if (size > 0 && !ended) this.windowUpdate(id, size);
    call.append(bytes.subarray(start, end));
    if (ended) call.halfClosed = true;
    this.handler.onBody(call);
  }

  onHeaders({ id, ended, headers, tooLarge }: HeaderBlock): void {
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
    if (tooLarge) {
      this.rst(id, ErrorCode.ENHANCE_YOUR_CALM);
      return;
    }
    const call = new ServerCall(this, id, headers);
    call.halfClosed = ended;
    this.calls.set(id, call);
    this.handler.onHeaders(call);
    if (ended && call.open) this.handler.onBody(call);
  }

  onSetting(key: number, value: number): void {
    if (key === Setting.MAX_FRAME_SIZE) this.maxFrame = Math.min(value, 1 << 20);
    if (key !== Setting.INITIAL_WINDOW_SIZE) return;
    const change = value - this.initialSendWindow;
    this.initialSendWindow = value;
    for (const call of this.calls.values()) call.sendWindow += change;
  }

  onSettingsEnd(): void {
    this.out.frame(0, FrameType.SETTINGS, Flag.ACK, 0);
    this.flushSoon();
    for (const call of [...this.waiting]) call.pump();
  }

  onWindowUpdate(id: number, increment: number): void {
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
    this.out.windowUpdate(id, increment);
    this.flushSoon();
  }

  private rst(id: number, code: number): void {
    this.out.rstStream(id, code);
    this.flushSoon();
  }

  private goAwayFrame(code: number, message: string): void {
    this.out.goAway(this.lastStream, code, message);
    this.flushSoon();
  }

  private fail(code: number, message: string): void {
    this.goAwayFrame(code, message);
    this.flush();
    this.transport.end();
    this.lost();
  }
}
