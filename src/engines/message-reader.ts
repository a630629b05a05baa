/** Cuts the bytes of a gRPC stream into messages. Format: gRPC over HTTP/2, "Length-Prefixed-Message". */
import { GrpcError, GrpcStatus } from "./grpc-error.ts";

const PREFIX = 5;

/** Takes a message, `bytes[start .. end)`, valid only during the call. Returns false to stop the reading. */
export interface MessageSink {
  takeMessage(bytes: Uint8Array, start: number, end: number): boolean;
}

/**
 * Reader of one stream. Messages that lie whole in one piece of data are given where they lie; only a message that straddles
 * pieces is copied, once, into a buffer of its exact size.
 */
export class MessageReader {
  /** Why the stream can't be read on: a compressed message (we never offer compression) or one over the limit. */
  problem: GrpcError | undefined;
  private head: Uint8Array | undefined;
  private headLength = 0;
  private body: Uint8Array | undefined;
  private filled = 0;

  constructor(
    private readonly maxBytes: number,
    private readonly sink: MessageSink,
  ) {}

  /** True when the stream stopped inside a message. */
  get insideMessage(): boolean {
    return this.headLength > 0 || this.body !== undefined;
  }

  /** Reads `bytes[start .. end)`. Returns the place after what was read: `end`, unless the sink stopped it or there is a problem. */
  read(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    while (at < end) {
      if (this.body !== undefined) {
        at = this.fillBody(this.body, bytes, at, end);
        if (this.filled < this.body.length) return at;
        const message = this.body;
        this.body = undefined;
        if (!this.sink.takeMessage(message, 0, message.length)) return at;
        continue;
      }
      let flag: number;
      let length: number;
      if (this.headLength === 0 && end - at >= PREFIX) {
        flag = bytes[at]!;
        length = ((bytes[at + 1]! << 24) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!) >>> 0;
        at += PREFIX;
      } else {
        this.head ??= new Uint8Array(PREFIX);
        while (this.headLength < PREFIX && at < end) this.head[this.headLength++] = bytes[at++]!;
        if (this.headLength < PREFIX) return at;
        const head = this.head;
        flag = head[0]!;
        length = ((head[1]! << 24) | (head[2]! << 16) | (head[3]! << 8) | head[4]!) >>> 0;
        this.headLength = 0;
      }
      if (flag !== 0 || length > this.maxBytes) {
        this.problem = new GrpcError(
          GrpcStatus.INTERNAL,
          flag !== 0
            ? "compressed message, although no compression was offered"
            : `message of ${length} bytes is over the limit of ${this.maxBytes}`,
        );
        return at;
      }
      if (end - at >= length) {
        at += length;
        if (!this.sink.takeMessage(bytes, at - length, at)) return at;
      } else {
        this.body = new Uint8Array(length);
        this.filled = 0;
      }
    }
    return at;
  }

  private fillBody(body: Uint8Array, bytes: Uint8Array, at: number, end: number): number {
    const to = Math.min(end, at + body.length - this.filled);
    body.set(bytes.subarray(at, to), this.filled);
    this.filled += to - at;
    return to;
  }
}
