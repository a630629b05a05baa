import { OutBuffer } from "../../http2/out-buffer.ts";
import type { Peer, Transport } from "../net/listener.ts";
import { HttpCall } from "./call.ts";
import { HttpSyntaxError, RequestReader } from "./request-reader.ts";

/** Unwritten bytes above which calls hold their messages back. */
const CONGESTED_BYTES = 1 << 18;

/** The server's side of one HTTP/1.1 connection: one call after the other. */
export class HttpConnection implements Peer {
  /** The socket does not take more at the moment. */
  congested = false;
  private readonly out = new OutBuffer();
  private readonly reader = new RequestReader(() => this.write("HTTP/1.1 100 Continue\r\n\r\n"));
  private call: HttpCall | undefined;
  private closed = false;
  private leaving = false;
  private flushing = false;

  constructor(
    private readonly transport: Transport,
    private readonly handle: (call: HttpCall) => void,
  ) {}

  receive(chunk: Uint8Array): void {
    this.reader.push(chunk);
    this.nextCall();
  }

  drained(): void {
    this.flush();
    if (!this.congested) this.call?.drained();
  }

  lost(): void {
    this.closed = true;
    const { call } = this;
    this.call = undefined;
    call?.cancelled();
  }

  write(data: string | Uint8Array): void {
    if (this.closed) return;
    this.out.append(typeof data === "string" ? Buffer.from(data, "utf8") : data);
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
    if (this.out.length === 0 && this.leaving && !this.call) this.transport.end();
  }

  /** The answer to the current call is complete. */
  answered({ closes }: { readonly closes: boolean }): void {
    this.call = undefined;
    if (closes) this.leaving = true;
    if (this.leaving) {
      if (this.out.length === 0) this.transport.end();
    } else queueMicrotask(() => this.nextCall());
  }

  /** Closes when the call that runs has its answer, or now. */
  leave(): void {
    this.leaving = true;
    this.flush();
    if (!this.call && this.out.length === 0) this.transport.end();
  }

  destroy(): void {
    this.flush();
    this.transport.destroy();
    this.lost();
  }

  private nextCall(): void {
    if (this.call || this.leaving || this.closed) return;
    try {
      const request = this.reader.next();
      if (!request) return;
      this.call = new HttpCall(this, request);
    } catch (error) {
      if (!(error instanceof HttpSyntaxError)) throw error;
      this.leaving = true;
      this.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
      return;
    }
    this.handle(this.call);
  }
}
