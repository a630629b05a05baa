import { FrameType } from "../../http2/frames.ts";
import { encodeHeaders } from "../../http2/hpack.ts";
import type { EngineCall } from "../call.ts";
import type { Connection } from "./connection.ts";

const RESPONSE_HEADERS = encodeHeaders([
  [":status", "200"],
  ["content-type", "application/grpc"],
]);
const OK_TRAILERS = encodeHeaders([["grpc-status", "0"]]);
const MESSAGE_PREFIX_BYTES = 5;

/**
 * One gRPC call on the server's side: an HTTP/2 stream that sends messages and ends with a status. Headers go out with the
 * first message, as Python's servers do. What flow control does not let through is queued here; look at `blocked`.
 */
export class ServerCall implements EngineCall {
  onCancel?(): void;
  onDrain?(): void;
  /** The client sends nothing more. */
  onHalfClose?(): void;
  /** False after the end, a reset or a lost connection. */
  open = true;
  /** Body of the request as it comes in (owned by the server). */
  body: Uint8Array = EMPTY;
  bodyLength = 0;
  halfClosed = false;
  /** Messages received so far. */
  messages = 0;
  /** Fields of the request that this server is too old to know. */
  ignored: readonly string[] | undefined;
  /** What every message becomes on its way out. */
  rewrite: ((message: Uint8Array) => Uint8Array) | undefined;
  sendWindow: number;
  private headersSent = false;
  private queue: Uint8Array[] = [];
  private queuedBytes = 0;
  private trailers: Uint8Array | undefined;

  constructor(
    readonly connection: Connection,
    readonly id: number,
    /** Headers of the request, `:path` among them. */
    readonly headers: ReadonlyMap<string, string>,
  ) {
    this.sendWindow = connection.initialSendWindow;
  }

  get path(): string {
    return this.headers.get(":path") ?? "";
  }

  /** True while earlier messages wait for flow control or for the socket: hold further ones back if you can. */
  get blocked(): boolean {
    return this.queuedBytes > 0 || this.connection.congested;
  }

  /** Adds to the body of the request. */
  append(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    const needed = this.bodyLength + bytes.length;
    if (needed > this.body.length) {
      const grown = new Uint8Array(Math.max(needed, 2 * this.body.length));
      grown.set(this.body.subarray(0, this.bodyLength));
      this.body = grown;
    }
    this.body.set(bytes, this.bodyLength);
    this.bodyLength = needed;
  }

  /** Bytes held back by flow control. */
  get held(): number {
    return this.queuedBytes;
  }

  /** Asks for one `onDrain` when the call is not blocked any more. */
  waitForDrain(): void {
    this.connection.wait(this);
  }

  /** Sends one message (copied). Does nothing on a call that has ended. */
  send(given: Uint8Array, givenLength = given.length): void {
    if (!this.open || this.trailers) return;
    let message = given;
    let length = givenLength;
    if (this.rewrite !== undefined) {
      message = this.rewrite(given.subarray(0, givenLength));
      length = message.length;
    }
    const connection = this.connection;
    if (!this.headersSent) this.sendHeaders();
    const size = length + MESSAGE_PREFIX_BYTES;
    if (
      this.queuedBytes === 0 &&
      !connection.congested &&
      size <= this.sendWindow &&
      size <= connection.sendWindow &&
      size <= connection.maxFrame
    ) {
      this.sendWindow -= size;
      connection.sendWindow -= size;
      const out = connection.out;
      out.frame(size, FrameType.DATA, 0, this.id);
      const at = out.take(size);
      writeMessage(out.bytes, at, message, length);
      connection.flushSoon();
      return;
    }
    const bytes = new Uint8Array(size);
    writeMessage(bytes, 0, message, length);
    this.queue.push(bytes);
    this.queuedBytes += size;
    connection.wait(this);
    this.pump();
  }

  /** Sends the headers now, before any message. */
  sendHeaders(): void {
    if (!this.open || this.headersSent) return;
    this.headersSent = true;
    this.headerFrame(RESPONSE_HEADERS, false);
  }

  /** Ends the call with a status; without any message before, headers and status travel together. */
  end(status = 0, message = "", metadata: Readonly<Record<string, string>> = {}): void {
    if (!this.open || this.trailers) return;
    const extra = Object.entries(metadata);
    if (status === 0 && extra.length === 0 && this.headersSent) this.trailers = OK_TRAILERS;
    else {
      const headers: [string, string][] = this.headersSent
        ? []
        : [
            [":status", "200"],
            ["content-type", "application/grpc"],
          ];
      headers.push(["grpc-status", String(status)]);
      if (message !== "") headers.push(["grpc-message", percentEncode(message)]);
      this.trailers = encodeHeaders(headers.concat(extra));
    }
    if (this.queuedBytes === 0) this.finish();
  }

  /** Resets the stream with an HTTP/2 error code; what was queued is lost. */
  reset(code: number): void {
    if (!this.open) return;
    this.open = false;
    this.connection.resetStream(this.id, code);
  }

  goAway(code: number): void {
    const { connection } = this;
    connection.goAway(code);
    if (code === 0) return;
    connection.end();
    connection.lost();
  }

  disconnect(): void {
    this.connection.destroy();
  }

  flush(): void {
    this.connection.flush();
  }

  garble(): void {
    this.rewrite = undefined;
    this.send(UNDECODABLE);
  }

  oversize(bytes: number): void {
    this.send(paddingMessage(bytes));
  }

  /** Sends what flow control lets through. Called by the connection. */
  pump(): void {
    const connection = this.connection;
    while (this.queue.length > 0 && !connection.congested) {
      const bytes = this.queue[0]!;
      const size = Math.min(bytes.length, this.sendWindow, connection.sendWindow, connection.maxFrame);
      if (size <= 0) return;
      this.sendWindow -= size;
      connection.sendWindow -= size;
      this.queuedBytes -= size;
      connection.out.frame(size, FrameType.DATA, 0, this.id);
      connection.out.append(bytes.subarray(0, size));
      connection.flushSoon();
      if (size === bytes.length) this.queue.shift();
      else this.queue[0] = bytes.subarray(size);
    }
    if (this.queue.length > 0) return;
    connection.waited(this);
    if (this.trailers) this.finish();
    else this.onDrain?.();
  }

  /** The peer or the connection is gone. Called by the connection. */
  cancelled(): void {
    if (!this.open) return;
    this.open = false;
    this.queue = [];
    this.onCancel?.();
  }

  private finish(): void {
    this.open = false;
    this.headerFrame(this.trailers!, true);
    this.connection.endStream(this);
  }

  private headerFrame(block: Uint8Array, last: boolean): void {
    const connection = this.connection;
    connection.out.headers(this.id, block, last, connection.maxFrame);
    connection.flushSoon();
  }
}

export const EMPTY = new Uint8Array(0);

/** Field 1 with a length that the message does not have. */
const UNDECODABLE = Uint8Array.of(0x0a, 0x7f, 0xff);
/** Tag of field 1000, which no message has, as bytes. */
const PADDING_TAG = [0xc2, 0x3e];
const LENGTH_BYTES = 5;

/** A message of `bytes` bytes in all with nothing but a field that everybody skips; at least 8. */
function paddingMessage(bytes: number): Uint8Array {
  const message = new Uint8Array(Math.max(bytes, PADDING_TAG.length + LENGTH_BYTES + 1));
  message.set(PADDING_TAG);
  let rest = message.length - PADDING_TAG.length - LENGTH_BYTES;
  for (let i = 0; i < LENGTH_BYTES; i++) {
    message[PADDING_TAG.length + i] = (rest & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0);
    rest >>>= 7;
  }
  return message;
}

function writeMessage(target: Uint8Array, at: number, message: Uint8Array, length: number): void {
  target[at] = 0;
  target[at + 1] = length >>> 24;
  target[at + 2] = length >>> 16;
  target[at + 3] = length >>> 8;
  target[at + 4] = length;
  // Token messages are a dozen bytes: a loop beats the call into the runtime that set() makes.
  if (length <= 64) for (let i = 0; i < length; i++) target[at + MESSAGE_PREFIX_BYTES + i] = message[i]!;
  else target.set(length === message.length ? message : message.subarray(0, length), at + MESSAGE_PREFIX_BYTES);
}

/** `grpc-message` coding: printable ASCII but `%` stays, all other bytes of the UTF-8 text are percent-encoded. */
function percentEncode(text: string): string {
  let out = "";
  for (const byte of Buffer.from(text, "utf8")) {
    if (byte >= 0x20 && byte <= 0x7e && byte !== 0x25) out += String.fromCharCode(byte);
    else out += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return out;
}
