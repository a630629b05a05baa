/** One keep-alive HTTP/1.1 connection over plain TCP, one request at a time. */
import type { Socket } from "bun";
import { HttpError, ResponseReader } from "./response-reader.ts";

/** Receiver of one response. */
export interface Exchange {
  onBody(status: number, bytes: Buffer, from: number, to: number): void;
  /** Once and last; `problem` says why there is no complete response. */
  onDone(status: number, problem?: string): void;
}

export class Connection {
  private socket: Socket | undefined;
  private exchange: Exchange | undefined;
  private unsent: Buffer | undefined;
  private reader: ResponseReader;

  constructor(
    private readonly hostname: string,
    private readonly port: number,
  ) {
    this.reader = this.newReader();
  }

  /** Sends a whole request, connecting first where needed. Problems arrive at `exchange.onDone`. */
  send(message: Buffer, exchange: Exchange): void {
    this.exchange = exchange;
    if (this.socket !== undefined) this.write(this.socket, message);
    else this.connect(message).catch((error: unknown) => this.fail(`connect: ${(error as Error).message}`));
  }

  close(): void {
    const { socket } = this;
    this.socket = undefined;
    socket?.end();
  }

  private newReader(): ResponseReader {
    return new ResponseReader({
      onBody: (status, bytes, from, to) => this.exchange?.onBody(status, bytes, from, to),
      onResponseEnd: (status, keepAlive) => {
        if (!keepAlive) this.close();
        const { exchange } = this;
        this.exchange = undefined;
        exchange?.onDone(status);
      },
    });
  }

  private async connect(message: Buffer): Promise<void> {
    this.reader = this.newReader();
    this.unsent = undefined;
    await Bun.connect({
      hostname: this.hostname,
      port: this.port,
      socket: {
        open: (socket) => {
          socket.setNoDelay(true);
          this.socket = socket;
          this.write(socket, message);
        },
        data: (socket, bytes) => {
          if (socket !== this.socket) return;
          try {
            this.reader.feed(bytes);
          } catch (error) {
            this.fail(error instanceof HttpError ? error.message : String(error));
          }
        },
        drain: (socket) => {
          if (this.unsent !== undefined) this.write(socket, this.unsent);
        },
        close: (socket) => {
          if (socket !== this.socket) return;
          this.socket = undefined;
          if (!this.reader.close() || this.exchange !== undefined) this.fail("the connection was closed");
        },
        error: (_socket, error) => this.fail(error.message),
      },
    });
  }

  private write(socket: Socket, message: Buffer): void {
    const sent = socket.write(message);
    this.unsent = sent < message.length ? message.subarray(Math.max(0, sent)) : undefined;
  }

  private fail(problem: string): void {
    this.close();
    const { exchange } = this;
    this.exchange = undefined;
    exchange?.onDone(0, problem);
  }
}
