/** Incremental reader of HTTP/1.1 responses (RFC 9112): length, chunked and until-close bodies, handed on without copies. */

export class HttpError extends Error {
  override readonly name = "HttpError";
}

export interface ResponseSink {
  /** `bytes[from .. to)` of the body, valid only during the call. */
  onBody(status: number, bytes: Buffer, from: number, to: number): void;
  /** The response is complete. */
  onResponseEnd(status: number, keepAlive: boolean): void;
}

const State = { head: 0, length: 1, chunkSize: 2, chunkData: 3, chunkEnd: 4, trailers: 5, untilClose: 6 } as const;
const LINE_FEED = 10;
const MAX_HEAD = 64 * 1024;

export class ResponseReader {
  private state: number = State.head;
  private pending: Buffer | undefined;
  private status = 0;
  private keepAlive = true;
  private left = 0;

  constructor(private readonly sink: ResponseSink) {}

  /** Takes what one read of the socket brought. Throws HttpError for what is no response. */
  feed(piece: Buffer): void {
    let bytes = piece;
    if (this.pending !== undefined) {
      bytes = Buffer.concat([this.pending, piece]);
      this.pending = undefined;
    }
    let at = 0;
    while (at < bytes.length) {
      const next = this.step(bytes, at);
      if (next < 0) {
        if (bytes.length - at > MAX_HEAD) throw new HttpError("a header or chunk line that does not end");
        this.pending = Buffer.from(bytes.subarray(at));
        return;
      }
      at = next;
    }
  }

  /** The peer closed the connection; false when that cut a response off. */
  close(): boolean {
    if (this.state === State.untilClose) {
      this.finish();
      return true;
    }
    return this.state === State.head && this.pending === undefined;
  }

  /** Reads one element; gives the place after it, or -1 when it is not all there. */
  private step(bytes: Buffer, at: number): number {
    switch (this.state) {
      case State.head: {
        const end = bytes.indexOf("\r\n\r\n", at, "latin1");
        if (end < 0) return -1;
        this.readHead(bytes.toString("latin1", at, end));
        return end + 4;
      }
      case State.length:
      case State.chunkData: {
        const to = Math.min(bytes.length, at + this.left);
        this.sink.onBody(this.status, bytes, at, to);
        this.left -= to - at;
        if (this.left === 0) {
          if (this.state === State.length) this.finish();
          else this.state = State.chunkEnd;
        }
        return to;
      }
      case State.untilClose:
        this.sink.onBody(this.status, bytes, at, bytes.length);
        return bytes.length;
      default:
        return this.readLine(bytes, at);
    }
  }

  private readLine(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(LINE_FEED, at);
    if (end < 0) return -1;
    if (this.state === State.chunkSize) {
      this.left = Number.parseInt(bytes.toString("latin1", at, end), 16);
      if (Number.isNaN(this.left)) throw new HttpError("a chunk without a size");
      this.state = this.left === 0 ? State.trailers : State.chunkData;
    } else if (this.state === State.chunkEnd) this.state = State.chunkSize;
    else if (end - at <= 1) this.finish();
    return end + 1;
  }

  private readHead(head: string): void {
    const status = /^HTTP\/1\.[01] (\d{3})/.exec(head);
    if (status === null) throw new HttpError("no status line");
    this.status = Number(status[1]);
    const lower = head.toLowerCase();
    this.keepAlive = !/\r\nconnection: *close/.test(lower);
    const length = /\r\ncontent-length: *(\d+)/.exec(lower);
    if (/\r\ntransfer-encoding:.*chunked/.test(lower)) this.state = State.chunkSize;
    else if (length === null) this.state = State.untilClose;
    else {
      this.left = Number(length[1]);
      this.state = State.length;
      if (this.left === 0) this.finish();
    }
  }

  private finish(): void {
    const keepAlive = this.keepAlive && this.state !== State.untilClose;
    this.state = State.head;
    this.sink.onResponseEnd(this.status, keepAlive);
  }
}
