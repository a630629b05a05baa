/** One running call of the framing channel: one HTTP/2 stream, read message by message. */
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from "node:http2";
import type { CallOptions, StreamCall, StreamHandler } from "./channel.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";
import { decodeGrpcMessage, grpcTimeout, headersToMetadata } from "./grpc-metadata.ts";
import { MessageReader } from "./message-reader.ts";

/** Status of an HTTP reply without a gRPC status ("HTTP to gRPC Status Code Mapping" of the gRPC documentation). */
const STATUS_OF_HTTP: Readonly<Record<number, number>> = {
  400: GrpcStatus.INTERNAL,
  401: GrpcStatus.UNAUTHENTICATED,
  403: GrpcStatus.PERMISSION_DENIED,
  404: GrpcStatus.UNIMPLEMENTED,
  429: GrpcStatus.UNAVAILABLE,
  502: GrpcStatus.UNAVAILABLE,
  503: GrpcStatus.UNAVAILABLE,
  504: GrpcStatus.UNAVAILABLE,
};

/** Status of a reset stream by HTTP/2 error code; the rest is INTERNAL. ENHANCE_YOUR_CALM is about the connection, not the engine's queue. */
const STATUS_OF_RESET: Readonly<Record<number, number>> = {
  [constants.NGHTTP2_REFUSED_STREAM]: GrpcStatus.UNAVAILABLE,
  [constants.NGHTTP2_CANCEL]: GrpcStatus.CANCELLED,
  [constants.NGHTTP2_ENHANCE_YOUR_CALM]: GrpcStatus.UNAVAILABLE,
  [constants.NGHTTP2_INADEQUATE_SECURITY]: GrpcStatus.PERMISSION_DENIED,
};

/** Below this size prefix and message are joined into one DATA frame; above, the copy would cost more than the frame. */
const JOIN_BELOW = 64 * 1024;

/**
 * Calls that got messages since the last flush. Bun gives every DATA frame as an event of its own and runs microtasks between
 * them; an immediate comes after all frames of one read of the socket, and one serves all calls.
 */
let touched: FramingCall[] = [];
let spare: FramingCall[] = [];

function flushTouched(): void {
  const calls = touched;
  touched = spare;
  for (let i = 0; i < calls.length; i++) calls[i]!.idle();
  calls.length = 0;
  spare = calls;
}

export interface CallSetup {
  readonly path: string;
  readonly authority: string;
  readonly request: Uint8Array;
  readonly handler: StreamHandler;
  readonly options: CallOptions;
  /** Metadata, already checked. */
  readonly headers: Readonly<Record<string, string>>;
  readonly maxReceiveBytes: number;
}

export class FramingCall implements StreamCall {
  /** Called once, when the call has ended here; the channel then forgets it. */
  onDone: (() => void) | undefined;
  private ended = false;
  private paused = false;
  private touched = false;
  private stream: ClientHttp2Stream | undefined;
  private readonly reader: MessageReader;
  private readonly deliver: (message: Uint8Array) => boolean;
  private readonly deadline: number;
  private readonly timer: ReturnType<typeof setTimeout> | undefined;
  private httpStatus = 0;
  private trailers: Readonly<Record<string, unknown>> | undefined;
  private streamError: Error | undefined;
  private onAbort: (() => void) | undefined;

  constructor(private readonly setup: CallSetup) {
    const { handler, options } = setup;
    this.reader = new MessageReader(setup.maxReceiveBytes);
    this.deliver = (message) => {
      handler.onMessage(message);
      return !this.ended;
    };
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

  get hasEnded(): boolean {
    return this.ended;
  }

  /** Sends the call over an open connection. `connectionLost` names why the connection ended, once it has. */
  start(session: ClientHttp2Session, connectionLost: () => string | undefined): void {
    if (this.ended) return;
    const { path, authority, request, headers } = this.setup;
    const all: Record<string, string> = {
      ":method": "POST",
      ":path": path,
      ":authority": authority,
      "content-type": "application/grpc",
      te: "trailers",
      "user-agent": "collie",
      ...headers,
    };
    if (this.deadline !== Number.POSITIVE_INFINITY)
      all["grpc-timeout"] = grpcTimeout(this.deadline - performance.now());
    let stream: ClientHttp2Stream;
    try {
      stream = session.request(all, { endStream: false });
    } catch {
      this.failLater(new GrpcError(GrpcStatus.UNAVAILABLE, "the connection does not take new calls"));
      return;
    }
    this.stream = stream;
    stream.on("response", (reply) => this.onResponse(reply));
    stream.on("trailers", (trailers) => {
      this.trailers = trailers;
    });
    stream.on("data", (data: Buffer) => this.onData(data));
    stream.on("error", (error) => {
      this.streamError = error;
    });
    stream.on("end", () => {
      if (this.trailers !== undefined) this.endWithStatus(this.trailers);
    });
    stream.on("close", () => {
      if (this.ended) return;
      if (this.trailers?.["grpc-status"] !== undefined) this.endWithStatus(this.trailers);
      // When the connection dies, Bun closes the streams before the session: the reason is known a moment later.
      else setImmediate(() => this.onLost(stream, connectionLost()));
    });
    if (this.paused) stream.pause();
    const prefix = Buffer.allocUnsafe(5);
    prefix[0] = 0;
    prefix.writeUInt32BE(request.length, 1);
    if (request.length < JOIN_BELOW) stream.end(Buffer.concat([prefix, request]));
    else {
      stream.write(prefix);
      stream.end(request);
    }
  }

  cancel(): void {
    this.fail(new GrpcError(GrpcStatus.CANCELLED, "cancelled by the client"));
  }

  pause(): void {
    this.paused = true;
    this.stream?.pause();
  }

  resume(): void {
    this.paused = false;
    this.stream?.resume();
  }

  /** Ends the call here and resets the stream at the peer. */
  fail(error: GrpcError): void {
    if (this.ended) return;
    const stream = this.stream;
    this.finish(error);
    if (stream !== undefined && !stream.closed) stream.close(constants.NGHTTP2_CANCEL);
    // A reset stream that stays paused would hold its unread bytes.
    stream?.resume();
  }

  /** As `fail`, but not before the caller of `serverStream` has its call. */
  failLater(error: GrpcError): void {
    queueMicrotask(() => this.fail(error));
  }

  private onResponse(reply: Readonly<Record<string, unknown>>): void {
    this.httpStatus = Number(reply[":status"]);
    if (reply["grpc-status"] !== undefined) this.trailers = reply;
    else if (this.httpStatus === 200 && !String(reply["content-type"] ?? "").startsWith("application/grpc"))
      this.fail(new GrpcError(GrpcStatus.UNKNOWN, "the reply is not gRPC"));
  }

  private onData(data: Uint8Array): void {
    if (this.ended || this.httpStatus !== 200) return;
    let problem: GrpcError | undefined;
    try {
      problem = this.reader.read(data, this.deliver);
    } catch {
      problem = new GrpcError(GrpcStatus.INTERNAL, "the receiver of the messages failed");
    }
    if (problem !== undefined) this.fail(problem);
    else if (!this.touched && this.setup.handler.onIdle !== undefined) {
      this.touched = true;
      if (touched.push(this) === 1) setImmediate(flushTouched);
    }
  }

  /** The read of the socket is over. */
  idle(): void {
    this.touched = false;
    if (this.ended) return;
    try {
      this.setup.handler.onIdle?.();
    } catch {
      this.fail(new GrpcError(GrpcStatus.INTERNAL, "the receiver of the messages failed"));
    }
  }

  /** The stream closed without a status. */
  private onLost(stream: ClientHttp2Stream, lost: string | undefined): void {
    if (this.ended) return;
    if (this.httpStatus !== 0 && this.httpStatus !== 200)
      this.finish(
        new GrpcError(
          STATUS_OF_HTTP[this.httpStatus] ?? GrpcStatus.UNKNOWN,
          `HTTP status ${this.httpStatus} instead of gRPC`,
        ),
      );
    else if (lost !== undefined) this.finish(new GrpcError(GrpcStatus.UNAVAILABLE, lost));
    else if (stream.rstCode !== 0)
      this.finish(
        new GrpcError(
          STATUS_OF_RESET[stream.rstCode ?? 2] ?? GrpcStatus.INTERNAL,
          `stream reset with code ${stream.rstCode}`,
        ),
      );
    else if (this.streamError !== undefined) this.finish(new GrpcError(GrpcStatus.UNAVAILABLE, "connection lost"));
    else this.finish(new GrpcError(GrpcStatus.INTERNAL, "the stream ended without a status"));
  }

  private endWithStatus(trailers: Readonly<Record<string, unknown>>): void {
    if (this.ended) return;
    const text = trailers["grpc-status"];
    const code = text === undefined ? Number.NaN : Number(text);
    if (!Number.isInteger(code)) this.finish(new GrpcError(GrpcStatus.INTERNAL, "the stream ended without a status"));
    else if (code !== GrpcStatus.OK)
      this.finish(
        new GrpcError(code, decodeGrpcMessage(String(trailers["grpc-message"] ?? "")), headersToMetadata(trailers)),
      );
    else if (this.reader.insideMessage)
      this.finish(new GrpcError(GrpcStatus.INTERNAL, "the stream ended inside a message"));
    else this.finish(undefined);
  }

  private finish(error: GrpcError | undefined): void {
    if (this.ended) return;
    this.ended = true;
    clearTimeout(this.timer);
    if (this.onAbort !== undefined) this.setup.options.signal?.removeEventListener("abort", this.onAbort);
    this.onDone?.();
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
