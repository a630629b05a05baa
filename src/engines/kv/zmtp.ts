/**
 * ZMTP 3.0, ZeroMQ's protocol over TCP, as far as one that only asks needs it: a greeting, the NULL mechanism, and messages of frames.
 * Format: https://rfc.zeromq.org/spec/23
 */

import { HeldBytes } from "../held-bytes.ts";

export type ZmtpSocketType = "SUB" | "DEALER";

/** Bytes that are no ZMTP, or a peer that wants what is not offered. */
export class ZmtpError extends Error {
  override readonly name = "ZmtpError";
}

const Flag = { more: 1, long: 2, command: 4 } as const;
const GREETING_BYTES = 64;
/** Longest message, all its frames together: engines send steps of a few megabytes at most. */
const MAX_MESSAGE_BYTES = 64 << 20;
/** Most frames of a message; those of engines have five. */
const MAX_FRAMES = 16;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What each side sends first: signature, version 3.0, mechanism NULL, not as server. */
function greeting(): Uint8Array {
  const bytes = new Uint8Array(GREETING_BYTES);
  bytes[0] = 0xff;
  bytes[9] = 0x7f;
  bytes[10] = 3;
  bytes.set(encoder.encode("NULL"), 12);
  return bytes;
}

function frame(flags: number, body: Uint8Array): Uint8Array {
  const isLong = body.length > 255;
  const head = isLong ? 9 : 2;
  const bytes = new Uint8Array(head + body.length);
  bytes[0] = flags | (isLong ? Flag.long : 0);
  if (isLong) new DataView(bytes.buffer).setUint32(5, body.length);
  else bytes[1] = body.length;
  bytes.set(body, head);
  return bytes;
}

function command(name: string, body: Uint8Array): Uint8Array {
  return frame(Flag.command, Buffer.concat([Buffer.from([name.length]), encoder.encode(name), body]));
}

/** READY with the metadata that every socket sends. */
function ready(type: ZmtpSocketType): Uint8Array {
  const property = (name: string, value: string): Buffer => {
    const size = Buffer.alloc(4);
    size.writeUInt32BE(value.length);
    return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), size, Buffer.from(value)]);
  };
  return command("READY", Buffer.concat([property("Socket-Type", type), property("Identity", "")]));
}

/** A message's bytes on the wire. */
export function zmtpMessage(frames: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(frames.map((body, i) => frame(i + 1 < frames.length ? Flag.more : 0, body)));
}

export interface ZmtpEvents {
  /** Bytes for the peer. */
  send(bytes: Uint8Array): void;
  /** The peer is ready: messages may be sent. */
  onReady(): void;
  /** The frames of a message, which are the receiver's to keep. */
  onMessage(frames: readonly Uint8Array[]): void;
}

/** One side of a connection, without the connection. */
export class ZmtpPeer {
  private held: HeldBytes | undefined;
  private state: "greeting" | "handshake" | "ready" = "greeting";
  private frames: Uint8Array[] = [];
  private frameBytes = 0;

  constructor(
    private readonly type: ZmtpSocketType,
    private readonly events: ZmtpEvents,
  ) {}

  /** The connection is up. */
  greet(): void {
    this.events.send(greeting());
  }

  /** Takes what came, which may be cut anywhere. Throws ZmtpError: the connection is of no more use then. */
  take(bytes: Uint8Array): void {
    const { held } = this;
    held?.add(bytes, 0, bytes.length);
    const read = held === undefined ? this.read(bytes) : this.read(held.bytes.subarray(held.start, held.end));
    if (held !== undefined) {
      held.start += read;
      if (held.start === held.end) this.held = undefined;
    } else if (read < bytes.length) {
      this.held = new HeldBytes();
      this.held.add(bytes, read, bytes.length);
    }
  }

  /** Reads what has come whole; how many bytes that was. */
  private read(bytes: Uint8Array): number {
    let at = 0;
    if (this.state === "greeting") {
      this.checkGreeting(bytes);
      if (bytes.length < GREETING_BYTES) return 0;
      at = GREETING_BYTES;
      this.state = "handshake";
      this.events.send(ready(this.type));
    }
    while (at < bytes.length) {
      const next = this.takeFrame(bytes, at);
      if (next === undefined) break;
      at = next;
    }
    return at;
  }

  /** Whatever of the greeting has come must be right. */
  private checkGreeting(bytes: Uint8Array): void {
    if (bytes[0] !== 0xff || (bytes.length > 9 && (bytes[9]! & 1) === 0))
      throw new ZmtpError("the peer is no ZeroMQ socket");
    if (bytes.length > 10 && bytes[10]! < 3) throw new ZmtpError("the peer speaks an old version of ZMTP");
    if (bytes.length < 32) return;
    const mechanism = decoder.decode(bytes.subarray(12, 32)).replaceAll("\0", "");
    if (mechanism !== "NULL") throw new ZmtpError("the peer wants its clients to authenticate");
  }

  /** Reads one frame; the place behind it, undefined: it has not come whole. */
  private takeFrame(bytes: Uint8Array, start: number): number | undefined {
    const flags = bytes[start]!;
    if ((flags & ~(Flag.more | Flag.long | Flag.command)) !== 0) throw new ZmtpError("a frame of an unknown kind");
    let at = start + 1;
    let length: number;
    if ((flags & Flag.long) !== 0) {
      if (bytes.length < at + 8) return undefined;
      const view = new DataView(bytes.buffer, bytes.byteOffset + at, 8);
      length = view.getUint32(0) * 2 ** 32 + view.getUint32(4);
      at += 8;
    } else {
      if (bytes.length < at + 1) return undefined;
      length = bytes[at++]!;
    }
    if (this.frameBytes + length > MAX_MESSAGE_BYTES)
      throw new ZmtpError(`a message of more than ${MAX_MESSAGE_BYTES} bytes`);
    if (bytes.length - at < length) return undefined;
    const body = bytes.slice(at, at + length);
    if ((flags & Flag.command) !== 0) this.takeCommand(body);
    else this.takePart(body, (flags & Flag.more) !== 0);
    return at + length;
  }

  private takePart(body: Uint8Array, hasMore: boolean): void {
    if (this.state !== "ready") throw new ZmtpError("a message before the handshake was over");
    this.frames.push(body);
    this.frameBytes += body.length;
    if (this.frames.length > MAX_FRAMES) throw new ZmtpError("a message of too many frames");
    if (hasMore) return;
    const { frames } = this;
    this.frames = [];
    this.frameBytes = 0;
    this.events.onMessage(frames);
  }

  private takeCommand(body: Uint8Array): void {
    const nameEnd = 1 + (body[0] ?? 0);
    if (body.length < nameEnd) throw new ZmtpError("a command cut off");
    const name = decoder.decode(body.subarray(1, nameEnd));
    if (name === "ERROR") throw new ZmtpError(`the peer refuses: ${decoder.decode(body.subarray(nameEnd + 1))}`);
    if (this.state === "handshake") {
      if (name !== "READY") throw new ZmtpError("the handshake is not that of the NULL mechanism");
      this.state = "ready";
      this.events.onReady();
    } else if (name === "PING") {
      // a time to live of two bytes, then what is to come back
      this.events.send(command("PONG", body.subarray(nameEnd + 2)));
    }
  }
}
