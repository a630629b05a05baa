/** A vLLM engine without an engine, for rehearsals of what the gateway does with one. */
import { FRAME_HEADER_BYTES, FrameType, PREFACE, readUint32 } from "../../http2/frames.ts";
import { encodeHeaders } from "../../http2/hpack.ts";
import { OutBuffer } from "../../http2/out-buffer.ts";
import { WireWriter } from "../../protobuf/writer.ts";
import type { ChannelOptions } from "../channel.ts";
import { dialectByName } from "../dialects.ts";
import type { Engine } from "../engine.ts";
import { createFramingChannel } from "../framing-channel.ts";
import type { FramingSocket, SocketEvents } from "../framing-socket.ts";
import { createGrpcEngine } from "../grpc-engine.ts";

const OPTIONS: ChannelOptions = {
  maxReceiveBytes: 1 << 20,
  keepaliveMs: 0,
  keepaliveTimeoutMs: 0,
  connectTimeoutMs: 5000,
};
const RESPONSE = encodeHeaders([
  [":status", "200"],
  ["content-type", "application/grpc"],
]);
const TRAILERS = encodeHeaders([["grpc-status", "0"]]);

/**
 * An engine whose connection is real up to the socket, in whose place something in memory answers: every generation with the same token
 * ids and the finish reason `length`. The streams go on together, by one token at each turn of the event loop, as those of an engine do.
 */
export function createStandInEngine(answer: Uint32Array): Engine {
  const script = messagesOf(answer);
  const channel = createFramingChannel("stand-in:0", OPTIONS, (_target, _tls, events) => new StandIn(events, script));
  return createGrpcEngine(dialectByName("vllm")!, { stream: channel, control: channel });
}

/** What comes on a stream: a message for each token, then the end. Each with its prefix, and all that come together in one. */
function messagesOf(answer: Uint32Array): Uint8Array[] {
  const writer = new WireWriter();
  const prefixed = (): Uint8Array => {
    const message = writer.written();
    const bytes = new Uint8Array(5 + message.length);
    new DataView(bytes.buffer).setUint32(1, message.length);
    bytes.set(message, 5);
    return bytes;
  };
  const messages = Array.from(answer, (_, i) => {
    writer.reset();
    const chunk = writer.begin(1);
    writer.packedUint32(1, answer, i, i + 1);
    writer.uint32(2, 1);
    writer.uint32(3, 1);
    writer.end(chunk);
    return prefixed();
  });
  writer.reset();
  const complete = writer.begin(2);
  writer.string(2, "length");
  writer.uint32(3, 1);
  writer.uint32(4, 1);
  writer.end(complete);
  return [...messages, prefixed()];
}

class StandIn implements FramingSocket {
  /** Messages sent, by stream. */
  private readonly streams = new Map<number, number>();
  private readonly out = new OutBuffer();
  private begun = false;
  private stepping = false;
  private over = false;

  constructor(
    private readonly events: SocketEvents,
    private readonly script: readonly Uint8Array[],
  ) {
    queueMicrotask(() => this.events.onOpen(this));
  }

  /** Takes whole frames only, as the sender writes them. */
  write(bytes: Uint8Array): number {
    for (let at = this.begun ? 0 : PREFACE.length; at < bytes.length; ) {
      const id = readUint32(bytes, at + 5);
      const type = bytes[at + 3];
      if (type === FrameType.HEADERS) this.streams.set(id, 0);
      else if (type === FrameType.RST_STREAM) this.streams.delete(id);
      at += FRAME_HEADER_BYTES + ((bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!);
    }
    if (!this.begun) this.out.settings([]);
    this.begun = true;
    this.stepSoon();
    return bytes.length;
  }

  end(): void {
    this.over = true;
  }

  destroy(): void {
    this.over = true;
  }

  private stepSoon(): void {
    if (this.stepping || this.over || (this.out.length === 0 && this.streams.size === 0)) return;
    this.stepping = true;
    setImmediate(() => {
      this.stepping = false;
      this.step();
    });
  }

  private step(): void {
    const { out, script } = this;
    if (this.over) return;
    for (const [id, sent] of this.streams) {
      if (sent === 0) out.headers(id, RESPONSE, false, RESPONSE.length);
      const message = script[sent]!;
      out.frame(message.length, FrameType.DATA, 0, id);
      out.append(message);
      if (sent + 1 < script.length) this.streams.set(id, sent + 1);
      else {
        out.headers(id, TRAILERS, true, TRAILERS.length);
        this.streams.delete(id);
      }
    }
    // Bun's sockets give a Buffer, too: code that has been compiled for another class would be thrown away.
    const read = Buffer.copyBytesFrom(out.bytes, out.start, out.length);
    out.drop(out.length);
    this.events.onData(read);
    this.stepSoon();
  }
}
