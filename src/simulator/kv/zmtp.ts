/** The server's side of ZMTP 3.0, the protocol of ZeroMQ sockets: https://rfc.zeromq.org/spec/23 */
import { OutBuffer } from "../../http2/out-buffer.ts";
import { type EngineServer, engineServer } from "../net/engine-server.ts";
import { listen, type Peer, type Transport } from "../net/listener.ts";

export interface ZmtpHandler {
  /** A message, frame by frame. */
  message(frames: readonly Uint8Array[], connection: ZmtpConnection): void;
  /** The connection is gone. */
  lost?(connection: ZmtpConnection): void;
}

const GREETING_BYTES = 64;
const MORE = 1;
const LONG = 2;
const COMMAND = 4;
/** Unsent bytes above which a message is dropped, as a socket at its high-water mark does. */
const HIGH_WATER_BYTES = 64 << 20;
const NO_BYTES = new Uint8Array(0);

/** One peer of a ZeroMQ socket that was bound. */
export class ZmtpConnection implements Peer {
  /** Handshakes are done: messages may be sent. */
  isReady = false;
  private greeted = false;
  private closed = false;
  private input: Uint8Array = NO_BYTES;
  private frames: Uint8Array[] = [];
  private readonly out = new OutBuffer();

  constructor(
    private readonly transport: Transport,
    private readonly socketType: "PUB" | "ROUTER",
    private readonly handler: ZmtpHandler,
  ) {
    this.write(greeting());
  }

  receive(chunk: Uint8Array): void {
    this.input = this.input.length === 0 ? chunk.slice() : Buffer.concat([this.input, chunk]);
    while (!this.closed && (this.greeted ? this.readFrame() : this.readGreeting()));
  }

  drained(): void {
    this.flush();
  }

  lost(): void {
    if (this.closed) return;
    this.closed = true;
    this.handler.lost?.(this);
  }

  destroy(): void {
    this.transport.destroy();
    this.lost();
  }

  /** Sends a message; false: it was dropped, as the peer takes nothing. */
  send(frames: readonly Uint8Array[]): boolean {
    if (!this.isReady || this.out.length > HIGH_WATER_BYTES) return false;
    for (const [i, frame] of frames.entries()) this.out.append(framed(frame, i < frames.length - 1 ? MORE : 0));
    this.flush();
    return true;
  }

  private write(bytes: Uint8Array): void {
    this.out.append(bytes);
    this.flush();
  }

  private flush(): void {
    if (this.closed || this.out.length === 0) return;
    const written = this.transport.write(this.out.bytes.subarray(this.out.start, this.out.end));
    if (written > 0) this.out.drop(written);
  }

  private readGreeting(): boolean {
    const { input } = this;
    if (input.length < GREETING_BYTES) return false;
    const isOurs = input[0] === 0xff && input[9] === 0x7f && input[10]! >= 3;
    if (!isOurs || Buffer.from(input.subarray(12, 17)).toString("latin1") !== "NULL\0") {
      this.destroy();
      return false;
    }
    this.input = input.subarray(GREETING_BYTES);
    this.greeted = true;
    this.write(framed(ready(this.socketType), COMMAND));
    return true;
  }

  private readFrame(): boolean {
    const { input } = this;
    const flags = input[0] ?? 0;
    const headBytes = (flags & LONG) !== 0 ? 9 : 2;
    if (input.length < headBytes) return false;
    const view = new DataView(input.buffer, input.byteOffset, input.byteLength);
    const size = (flags & LONG) !== 0 ? Number(view.getBigUint64(1)) : input[1]!;
    if (input.length < headBytes + size) return false;
    const body = input.slice(headBytes, headBytes + size);
    this.input = input.subarray(headBytes + size);
    if ((flags & COMMAND) !== 0) this.command(body);
    else {
      this.frames.push(body);
      if ((flags & MORE) === 0) this.handler.message(this.frames.splice(0), this);
    }
    return true;
  }

  private command(body: Uint8Array): void {
    const nameEnd = 1 + (body[0] ?? 0);
    const rest = body.subarray(nameEnd);
    switch (Buffer.from(body.subarray(1, nameEnd)).toString("latin1")) {
      case "READY":
        this.isReady = true;
        return;
      case "PING":
        this.write(framed(Buffer.concat([named("PONG"), rest.subarray(2)]), COMMAND));
        return;
      // The forms of 3.1, for peers that overlook our version.
      case "SUBSCRIBE":
        this.handler.message([Buffer.concat([Uint8Array.of(1), rest])], this);
        return;
      case "CANCEL":
        this.handler.message([Buffer.concat([Uint8Array.of(0), rest])], this);
    }
  }
}

/** Binds a ZeroMQ socket. Throws when the port is taken. */
export function bindZmtp(host: string, port: number, socketType: "PUB" | "ROUTER", handler: ZmtpHandler): EngineServer {
  return engineServer(
    listen(host, port, (transport) => new ZmtpConnection(transport, socketType, handler)),
    (connection) => connection.destroy(),
  );
}

function greeting(): Uint8Array {
  const bytes = new Uint8Array(GREETING_BYTES);
  bytes[0] = 0xff;
  bytes[9] = 0x7f;
  bytes[10] = 3;
  bytes.set(Buffer.from("NULL", "latin1"), 12);
  return bytes;
}

function named(text: string): Uint8Array {
  return Buffer.concat([Uint8Array.of(text.length), Buffer.from(text, "latin1")]);
}

function ready(socketType: string): Uint8Array {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(socketType.length);
  return Buffer.concat([named("READY"), named("Socket-Type"), size, Buffer.from(socketType, "latin1")]);
}

function framed(body: Uint8Array, flags: number): Uint8Array {
  if (body.length < 256) return Buffer.concat([Uint8Array.of(flags, body.length), body]);
  const head = Buffer.alloc(9);
  head[0] = flags | LONG;
  head.writeBigUInt64BE(BigInt(body.length), 1);
  return Buffer.concat([head, body]);
}
