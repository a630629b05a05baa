/**
 * One gRPC connection to an engine: bytes in, bytes out. Two implementations stand behind it: our own framing
 * (generations), and @grpc/grpc-js (everything else, or all of it with `--engine-transport grpc-js`).
 */
import type { GrpcError } from "./grpc-error.ts";

export interface ChannelOptions {
  /** Largest message accepted, in bytes. */
  readonly maxReceiveBytes: number;
  /** Interval of HTTP/2 pings in milliseconds; 0 sends none. */
  readonly keepaliveMs: number;
  /** How long a ping may stay unanswered before the connection counts as dead, in milliseconds. */
  readonly keepaliveTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /**
   * Connections at most, opened as calls need them: each call takes the one with the fewest. 1 by default. Where the peer takes no more
   * calls on all of them, there are more.
   */
  readonly connections?: number;
  /** A connection that was up is over, and not by `close`. Told by the framing channel only, before the calls on it end. */
  readonly onLost?: (() => void) | undefined;
  /** TLS of `grpcs://`; absent for plain HTTP/2. All members are PEM text. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

export interface CallOptions {
  /** Metadata of the call. Keys are lower case; keys ending in `-bin` carry bytes. Refused above 7 KB in all. */
  readonly metadata?: Readonly<Record<string, string | Uint8Array>>;
  /** Deadline in milliseconds from now; absent means none. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Receiver of a server stream. Calls come in order, never after `onEnd`, and `onEnd` comes exactly once, never before
 * `serverStream` has returned. An `onMessage` or `onIdle` that throws fails the call; `onEnd` must not throw.
 */
export interface StreamHandler {
  /** One message, `bytes[start .. end)`: it lies where it was read to, and is valid only during the call. */
  onMessage(bytes: Uint8Array, start: number, end: number): void;
  /** After all messages of the call in one read from the socket: the moment to flush what they led to. */
  onIdle?(): void;
  /** The end: no error means status OK. */
  onEnd(error?: GrpcError): void;
}

export interface StreamCall {
  /** Ends the call locally at once (`onEnd` with CANCELLED, if it had not ended) and resets the stream at the peer. */
  cancel(): void;
  /** Stops reading; HTTP/2 flow control then stops the engine for this stream only. A few messages may still arrive. */
  pause(): void;
  /** Reads on, not before the code that runs now is done. */
  resume(): void;
}

export interface Channel {
  /** Unary call: resolves to the reply's bytes or rejects with a GrpcError. */
  unary(path: string, request: Uint8Array, options?: CallOptions): Promise<Uint8Array>;
  /** Server-streaming call with one request, whose bytes must not change while the call runs. Never throws: failures arrive at `onEnd`. Connects on demand. */
  serverStream(path: string, request: Uint8Array, handler: StreamHandler, options?: CallOptions): StreamCall;
  /** Closes the connection. Running calls end with UNAVAILABLE. */
  close(): void;
}
