/** One HTTP/2 connection of the framing channel, from the dial to the last stream (RFC 9113, the client's side). */
import { ConnectionError, DEFAULT_WINDOW, ErrorCode, Flag, FrameType, MAX_WINDOW, Setting } from "../http2/frames.ts";
import type { HeaderBlock } from "../http2/header-block.ts";
import { EMPTY_TABLE, HPACK_TABLE_BYTES, MAX_HEADER_LIST_BYTES } from "../http2/hpack.ts";
import { IncomingFrames, type IncomingHandler, PING_BYTES } from "../http2/incoming.ts";
import type { ChannelOptions } from "./channel.ts";
import { type FramingCall, STREAM_WINDOW } from "./framing-call.ts";
import { Pings } from "./framing-pings.ts";
import type { RequestHeaders } from "./framing-request.ts";
import { FramingSender } from "./framing-sender.ts";
import type { openSocket } from "./framing-socket.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";

/** Granted to the peer for the whole connection and given back on receipt: a paused call must not stop its neighbours. */
const CONNECTION_WINDOW = 64 << 20;

export interface ConnectionEvents {
  /** The connection is over, and no call runs on it; `wasUp`: it could be used before. Called once. */
  onGone(wasUp: boolean): void;
  /** The peer ended the connection because we pinged too often. */
  onTooManyPings(): void;
  /** This call must go another way: the peer takes fewer streams at once than were waiting, or goes away. */
  onOverflow(call: FramingCall): void;
}

type State = "connecting" | "open" | "draining" | "dead";

export class FramingConnection implements IncomingHandler {
  readonly sender: FramingSender;
  /** Calls that got messages in the read of the socket that is being parsed, and were not told yet that there are no more in it. */
  readonly touched: FramingCall[] = [];
  /** Calls whose stream is over and whose reader is paused. */
  readonly finishing = new Set<FramingCall>();
  private state: State = "connecting";
  /** Calls to send once the connection is up, or once the code that runs now is done. */
  private readonly waiting = new Set<FramingCall>();
  private readonly streams = new Map<number, FramingCall>();
  private readonly incoming = new IncomingFrames(this);
  private readonly connectTimer: ReturnType<typeof setTimeout>;
  private pings: Pings | undefined;
  private nextId = 1;
  private maxStreams = Number.POSITIVE_INFINITY;
  private initialSendWindow = DEFAULT_WINDOW;
  /** The peer made its table of headers smaller, and our next block has to say that we saw it. */
  private tableShrunk = false;
  private received = 0;

  /** Throws for a target that is no address, and for certificates that can't be read. */
  constructor(
    target: string,
    private readonly headers: RequestHeaders,
    private readonly options: ChannelOptions,
    readonly keepaliveMs: number,
    open: typeof openSocket,
    private readonly events: ConnectionEvents,
  ) {
    const socket = open(target, options.tls, {
      onOpen: () => this.greet(),
      onData: (bytes) => this.receive(bytes),
      onDrain: () => this.sender.flush(),
      onClose: (code) => this.destroy(this.failure(code)),
    });
    this.sender = new FramingSender(socket, {
      beforeFlush: () => this.startWaiting(),
      onStuck: () => this.destroy("connection lost (the engine does not read)"),
    });
    this.connectTimer = setTimeout(() => this.destroy("connect timeout"), options.connectTimeoutMs);
  }

  /** It takes calls, if not too many. */
  get isUsable(): boolean {
    return this.state === "open" || this.state === "connecting";
  }

  get calls(): number {
    return this.streams.size + this.waiting.size;
  }

  /** True when a new call may go this way. */
  get hasRoom(): boolean {
    return this.isUsable && this.calls < this.maxStreams;
  }

  /** Sends a call soon, or as soon as the connection is up. A call that ends before is never sent. */
  send(call: FramingCall): void {
    call.connection = this;
    this.waiting.add(call);
    if (this.state === "open") this.sender.flushSoon();
  }

  /** Ends the connection and every call on it with UNAVAILABLE, save those whose last message has come. */
  destroy(why: string): void {
    this.shut(why, () => this.sender.destroy());
  }

  /** As `destroy`, with a goodbye to the peer. */
  close(why: string, code: number = ErrorCode.NO_ERROR): void {
    this.shut(why, () => {
      this.sender.out.goAway(0, code, "");
      this.sender.end();
    });
  }

  /** Ends the calls, too, that have come to their end and are not read to it. */
  closeAll(why: string): void {
    const calls = [...this.finishing];
    this.close(why);
    for (const call of calls) call.fail(new GrpcError(GrpcStatus.UNAVAILABLE, why));
  }

  private failure(detail: string | undefined): string {
    const what = this.state === "connecting" ? "cannot connect" : "connection lost";
    return detail === undefined ? what : `${what} (${detail})`;
  }

  /** The call ends before its stream does. */
  abandon(call: FramingCall, code: number): void {
    this.waiting.delete(call);
    if (this.streams.get(call.id) !== call) return;
    this.sender.rstStream(call.id, code);
    this.forget(call);
  }

  /** The peer has ended the call's stream. */
  streamOver(call: FramingCall): void {
    if (call.isSending) this.abandon(call, ErrorCode.CANCEL);
    else this.forget(call);
  }

  private forget(call: FramingCall): void {
    this.streams.delete(call.id);
    this.sender.blocked.delete(call);
    if (this.state === "draining" && this.streams.size === 0) this.close("connection closed");
  }

  private shut(why: string, closeSocket: () => void): void {
    if (this.state === "dead") return;
    const wasUp = this.state !== "connecting";
    this.state = "dead";
    this.incoming.stop();
    clearTimeout(this.connectTimer);
    this.pings?.stop();
    closeSocket();
    this.events.onGone(wasUp);
    const calls = [...this.waiting, ...this.streams.values()];
    this.waiting.clear();
    this.streams.clear();
    for (const call of calls) call.fail(new GrpcError(GrpcStatus.UNAVAILABLE, why));
  }

  /** The socket is up: preface and settings. Calls wait for the peer's, which show that it speaks HTTP/2 and what it allows. */
  private greet(): void {
    this.sender.greet([
      [Setting.ENABLE_PUSH, 0],
      [Setting.INITIAL_WINDOW_SIZE, STREAM_WINDOW],
      [Setting.MAX_HEADER_LIST_SIZE, MAX_HEADER_LIST_BYTES],
    ]);
    this.sender.windowUpdate(0, CONNECTION_WINDOW - DEFAULT_WINDOW);
  }

  /** The peer's first settings have come. */
  private opened(): void {
    this.state = "open";
    clearTimeout(this.connectTimer);
    const { keepaliveMs } = this;
    if (keepaliveMs > 0)
      this.pings = new Pings(
        keepaliveMs,
        this.options.keepaliveTimeoutMs,
        () => this.sender.ping(new Uint8Array(PING_BYTES), 0),
        () => this.destroy("connection lost (no answer to a ping)"),
      );
    this.startWaiting();
  }

  private startWaiting(): void {
    if (this.state !== "open" || this.waiting.size === 0) return;
    const calls = [...this.waiting];
    this.waiting.clear();
    for (const call of calls) {
      if (this.state !== "open" || this.streams.size >= this.maxStreams) this.events.onOverflow(call);
      else this.start(call);
    }
  }

  private start(call: FramingCall): void {
    const { sender } = this;
    const { path, headers } = call.setup;
    call.id = this.nextId;
    this.nextId += 2;
    call.sendWindow = this.initialSendWindow;
    this.streams.set(call.id, call);
    const block = this.headers.encode(path, headers, call.deadline - performance.now());
    sender.out.headers(call.id, this.tableShrunk ? Buffer.concat([EMPTY_TABLE, block]) : block, false, sender.maxFrame);
    this.tableShrunk = false;
    sender.blocked.add(call);
    // No id is left: the next call takes a new connection.
    if (this.nextId > MAX_WINDOW) this.drain();
  }

  /** Takes no more calls; ends once the running ones have. */
  private drain(): void {
    this.state = "draining";
    this.pings?.stop();
    const calls = [...this.waiting];
    this.waiting.clear();
    for (const call of calls) this.events.onOverflow(call);
    if (this.streams.size === 0) this.close("connection closed");
  }

  private receive(chunk: Uint8Array): void {
    try {
      this.incoming.push(chunk);
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      this.close(this.failure(error.message), error.code);
    }
    const { touched } = this;
    for (let i = 0; i < touched.length; i++) touched[i]!.idle();
    touched.length = 0;
  }

  onData(id: number, bytes: Uint8Array, start: number, end: number, size: number, ended: boolean): void {
    this.received += size;
    if (this.received >= CONNECTION_WINDOW / 4) {
      this.sender.windowUpdate(0, this.received);
      this.received = 0;
    }
    const call = this.callOf(id);
    if (call === undefined) return;
    if (size > 0) call.takeData(bytes, start, end, size, this.incoming.isLastData(id, start));
    if (ended) call.takeEnd();
  }

  onHeaders({ id, ended, headers, tooLarge }: HeaderBlock): void {
    const call = this.callOf(id);
    if (tooLarge) call?.fail(new GrpcError(GrpcStatus.INTERNAL, "headers over the limit of 64 KB"));
    else call?.takeHeaders(headers, ended);
  }

  onReset(id: number, code: number): void {
    const call = this.callOf(id);
    if (call === undefined) return;
    this.forget(call);
    call.takeReset(code);
  }

  onSetting(key: number, value: number): void {
    // A peer that allows no stream at all could never be used; REFUSED_STREAM then tells the caller.
    if (key === Setting.MAX_CONCURRENT_STREAMS) this.maxStreams = Math.max(1, value);
    else if (key === Setting.MAX_FRAME_SIZE) this.sender.setMaxFrame(value);
    else if (key === Setting.HEADER_TABLE_SIZE) this.tableShrunk ||= value < HPACK_TABLE_BYTES;
    else if (key === Setting.INITIAL_WINDOW_SIZE) {
      for (const call of this.streams.values()) call.sendWindow += value - this.initialSendWindow;
      this.initialSendWindow = value;
    }
  }

  onSettingsEnd(): void {
    this.sender.out.frame(0, FrameType.SETTINGS, Flag.ACK, 0);
    this.sender.flushSoon();
    if (this.state === "connecting") this.opened();
  }

  onPing(payload: Uint8Array): void {
    this.sender.ping(payload, Flag.ACK);
  }

  onPingAnswer(): void {
    this.pings?.answered();
  }

  onWindowUpdate(id: number, increment: number): void {
    const call = id === 0 ? undefined : this.callOf(id);
    if (id === 0) this.sender.addWindow(increment);
    if (call === undefined) return;
    call.sendWindow += increment;
    if (call.sendWindow > MAX_WINDOW)
      call.fail(new GrpcError(GrpcStatus.INTERNAL, "window overflow"), ErrorCode.FLOW_CONTROL_ERROR);
    else if (call.isSending) this.sender.flushSoon();
  }

  onGoAway(lastId: number, code: number): void {
    if (code !== ErrorCode.NO_ERROR) {
      if (code === ErrorCode.ENHANCE_YOUR_CALM) this.events.onTooManyPings();
      this.destroy(`connection closed by the engine (GOAWAY code ${code})`);
      return;
    }
    const unserved = [...this.streams.values()].filter((call) => call.id > lastId);
    this.drain();
    for (const call of unserved) call.fail(new GrpcError(GrpcStatus.UNAVAILABLE, "the engine is shutting down"));
  }

  /** The call of a stream. A frame of one that is over is ignored; one that never was ends the connection. */
  private callOf(id: number): FramingCall | undefined {
    const call = this.streams.get(id);
    if (call === undefined && (id % 2 === 0 || id >= this.nextId))
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "frame of a stream that was never opened");
    return call;
  }
}
