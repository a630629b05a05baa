/** One HTTP/2 connection of the framing channel, from the dial to the last stream. */
import { type ClientHttp2Session, connect, constants } from "node:http2";
import type { ChannelOptions } from "./channel.ts";
import type { FramingCall } from "./framing-call.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";

/** Flow-control window of each stream: what a paused stream may hold, and enough for full speed on a fast network. */
const STREAM_WINDOW = 1 << 20;

export interface ConnectionEvents {
  /** The connection takes no more calls: it failed, closed or is draining. Called once. */
  onUnusable(): void;
  /** The peer ended the connection because we pinged too often. */
  onTooManyPings(): void;
  /** The peer takes fewer streams at once than calls were waiting: this call must go another way. */
  onOverflow(call: FramingCall): void;
}

type State = "connecting" | "open" | "draining" | "dead";

/**
 * Never call `setLocalWindowSize` on the session: on Bun 1.4.5 a value above the stream window stops the window updates of every
 * stream (oven-sh/bun#40180).
 */
export class FramingConnection {
  private readonly session: ClientHttp2Session;
  private state: State = "connecting";
  private readonly waiting = new Set<FramingCall>();
  private readonly running = new Set<FramingCall>();
  private maxStreams = Number.POSITIVE_INFINITY;
  private lostBecause: string | undefined;
  private connectTimer: ReturnType<typeof setTimeout> | undefined;
  private pingTimer: ReturnType<typeof setInterval> | undefined;
  private readonly whyLost = (): string | undefined => this.lostBecause;

  constructor(
    target: string,
    private readonly options: ChannelOptions,
    readonly keepaliveMs: number,
    private readonly events: ConnectionEvents,
  ) {
    const { tls } = options;
    const session = connect(`${tls === undefined ? "http" : "https"}://${target}`, {
      ...tls,
      settings: { initialWindowSize: STREAM_WINDOW, enablePush: false },
    });
    this.session = session;
    this.connectTimer = setTimeout(() => this.destroy("connect timeout"), options.connectTimeoutMs);
    // Without a listener an error of the connection would end the process.
    session.on("error", (error: NodeJS.ErrnoException) => {
      const code = typeof error.code === "string" ? ` (${error.code})` : "";
      this.destroy(this.state === "connecting" ? `cannot connect${code}` : `connection lost${code}`);
    });
    session.on("goaway", (code: number) => this.onGoaway(code));
    session.on("close", () => this.destroy(this.state === "connecting" ? "cannot connect" : "connection lost"));
    session.on("remoteSettings", (settings) => {
      // A peer that allows no stream at all could never be used; REFUSED_STREAM then tells the caller.
      this.maxStreams = Math.max(1, settings.maxConcurrentStreams ?? Number.POSITIVE_INFINITY);
      this.onOpen();
    });
  }

  /** True when a new call may go this way. */
  get hasRoom(): boolean {
    return (
      (this.state === "open" || this.state === "connecting") && this.running.size + this.waiting.size < this.maxStreams
    );
  }

  /** Sends a call now, or as soon as the connection is up. A call that ends before is never sent. */
  send(call: FramingCall): void {
    if (this.state === "open") {
      this.run(call);
      return;
    }
    this.waiting.add(call);
    call.onDone = () => this.waiting.delete(call);
  }

  /** Ends the connection and every call on it with UNAVAILABLE. */
  destroy(why: string): void {
    if (this.state === "dead") return;
    const usable = this.state !== "draining";
    this.state = "dead";
    this.lostBecause ??= why;
    clearTimeout(this.connectTimer);
    clearInterval(this.pingTimer);
    if (usable) this.events.onUnusable();
    const error = new GrpcError(GrpcStatus.UNAVAILABLE, this.lostBecause);
    for (const call of [...this.waiting, ...this.running]) call.fail(error);
    this.session.destroy();
  }

  private run(call: FramingCall): void {
    this.running.add(call);
    call.onDone = () => {
      this.running.delete(call);
      if (this.state === "draining" && this.running.size === 0) this.destroy("connection closed");
    };
    call.start(this.session, this.whyLost);
  }

  /** The peer's settings have come: it speaks HTTP/2, and its limit of streams is known. */
  private onOpen(): void {
    if (this.state !== "connecting") return;
    this.state = "open";
    clearTimeout(this.connectTimer);
    if (this.keepaliveMs > 0) {
      this.pingTimer = setInterval(() => this.ping(), this.keepaliveMs);
      this.pingTimer.unref();
    }
    const calls = [...this.waiting];
    this.waiting.clear();
    for (const call of calls) {
      if (call.hasEnded) continue;
      if (this.running.size < this.maxStreams) this.run(call);
      else this.events.onOverflow(call);
    }
  }

  private ping(): void {
    const timer = setTimeout(
      () => this.destroy("connection lost (no answer to a ping)"),
      this.options.keepaliveTimeoutMs,
    );
    timer.unref();
    try {
      this.session.ping(() => clearTimeout(timer));
    } catch {
      clearTimeout(timer);
    }
  }

  private onGoaway(code: number): void {
    if (this.state === "dead") return;
    if (code !== constants.NGHTTP2_NO_ERROR) {
      if (code === constants.NGHTTP2_ENHANCE_YOUR_CALM) this.events.onTooManyPings();
      this.destroy(`connection closed by the engine (GOAWAY code ${code})`);
      return;
    }
    if (this.state !== "draining") {
      this.state = "draining";
      clearInterval(this.pingTimer);
      clearTimeout(this.connectTimer);
      this.events.onUnusable();
    }
    // node:http2 refuses the streams after the last one that the peer serves.
    const error = new GrpcError(GrpcStatus.UNAVAILABLE, "the engine is shutting down");
    for (const call of [...this.waiting]) call.fail(error);
    if (this.running.size === 0) this.destroy("connection closed");
  }
}
