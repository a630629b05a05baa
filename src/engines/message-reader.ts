/** Cuts the bytes of a gRPC stream into messages. Format: gRPC over HTTP/2, "Length-Prefixed-Message". */
import { GrpcError, GrpcStatus } from "./grpc-error.ts";

const PREFIX = 5;

/**
 * Reader of one stream. Messages that lie whole in one piece of data are given as views of it; only a message that straddles
 * pieces is copied, once, into a buffer of its exact size.
 */
export class MessageReader {
  private head: Uint8Array | undefined;
  private headLength = 0;
  private body: Uint8Array | undefined;
  private filled = 0;

  constructor(private readonly maxBytes: number) {}

  /** True when the stream stopped inside a message. */
  get insideMessage(): boolean {
    return this.headLength > 0 || this.body !== undefined;
  }

  /**
   * Gives every message that `data` completes to `onMessage`, which returns false to stop the reading for good.
   * Returns the reason why the stream can't be read on: a compressed message (we never offer compression) or one over the limit.
   */
  read(data: Uint8Array, onMessage: (message: Uint8Array) => boolean): GrpcError | undefined {
    const end = data.length;
    let at = 0;
    while (at < end) {
      if (this.body !== undefined) {
        const take = Math.min(this.body.length - this.filled, end - at);
        this.body.set(data.subarray(at, at + take), this.filled);
        this.filled += take;
        at += take;
        if (this.filled < this.body.length) return undefined;
        const message = this.body;
        this.body = undefined;
        if (!onMessage(message)) return undefined;
        continue;
      }
      let flag: number;
      let length: number;
      if (this.headLength === 0 && end - at >= PREFIX) {
        flag = data[at]!;
        length = ((data[at + 1]! << 24) | (data[at + 2]! << 16) | (data[at + 3]! << 8) | data[at + 4]!) >>> 0;
        at += PREFIX;
      } else {
        this.head ??= new Uint8Array(PREFIX);
        while (this.headLength < PREFIX && at < end) this.head[this.headLength++] = data[at++]!;
        if (this.headLength < PREFIX) return undefined;
        const head = this.head;
        flag = head[0]!;
        length = ((head[1]! << 24) | (head[2]! << 16) | (head[3]! << 8) | head[4]!) >>> 0;
        this.headLength = 0;
      }
      if (flag !== 0)
        return new GrpcError(GrpcStatus.INTERNAL, "compressed message, although no compression was offered");
      if (length > this.maxBytes)
        return new GrpcError(GrpcStatus.INTERNAL, `message of ${length} bytes is over the limit of ${this.maxBytes}`);
      if (end - at >= length) {
        const message = data.subarray(at, at + length);
        at += length;
        if (!onMessage(message)) return undefined;
      } else {
        this.body = new Uint8Array(length);
        this.filled = 0;
      }
    }
    return undefined;
  }
}
