/** A peer that speaks HTTP/2 frame by frame, for what no HTTP/2 library lets a server do. Frames: RFC 9113, section 4. */
import { createServer, type Socket } from "node:net";

const PREFACE_BYTES = 24;
const HEADER_BYTES = 9;
export const Frame = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;
export const END_STREAM = 1;
const ACK = 1;
export const END_HEADERS = 4;

/** Header block fragments: static index 8 is `:status: 200`; the rest are literals without indexing. */
export const literal = (name: string, value: string): Buffer =>
  Buffer.concat([Buffer.of(0, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]);
export const RESPONSE = Buffer.concat([Buffer.of(0x88), literal("content-type", "application/grpc")]);

export function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const out = Buffer.alloc(HEADER_BYTES + payload.length);
  out.writeUIntBE(payload.length, 0, 3);
  out[3] = type;
  out[4] = flags;
  out.writeUInt32BE(stream, 5);
  out.set(payload, HEADER_BYTES);
  return out;
}

export const numbers = (...values: number[]): Buffer => {
  const out = Buffer.alloc(values.length * 4);
  values.forEach((value, i) => {
    out.writeUInt32BE(value, i * 4);
  });
  return out;
};

export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Uint8Array;
}

/** One connection as the peer sees it. */
export class PeerConnection {
  /** Times of the pings that came, in milliseconds. */
  readonly pings: number[] = [];
  /** All frames that came. */
  readonly frames: ReceivedFrame[] = [];
  constructor(readonly socket: Socket) {}
  send(type: number, flags: number, stream: number, payload: Uint8Array): void {
    this.socket.write(frame(type, flags, stream, payload));
  }
  respond(stream: number): void {
    this.socket.write(frame(Frame.HEADERS, END_HEADERS, stream, RESPONSE));
  }
  /** A gRPC message in a DATA frame of its own. */
  message(stream: number, bytes: Uint8Array): void {
    this.socket.write(frame(Frame.DATA, 0, stream, Buffer.concat([Buffer.of(0), numbers(bytes.length), bytes])));
  }
  trailers(stream: number, status: string): void {
    this.socket.write(frame(Frame.HEADERS, END_HEADERS | END_STREAM, stream, literal("grpc-status", status)));
  }
  reset(stream: number, code: number): void {
    this.socket.write(frame(Frame.RST_STREAM, 0, stream, numbers(code)));
  }
  goaway(lastStream: number, code: number): void {
    this.socket.write(frame(Frame.GOAWAY, 0, 0, numbers(lastStream, code)));
  }
}

export interface FrameServer {
  readonly target: string;
  /** Connections taken so far. */
  readonly connections: PeerConnection[];
  close(): void;
}

/** Listens on a free port. `onRequest` comes with the headers of each call, `onPing` after the answer to a ping. */
export async function startFrameServer(
  onRequest: (connection: PeerConnection, stream: number) => void,
  options: {
    readonly host?: string;
    readonly maxStreams?: number;
    /** More settings, as keys and values. */
    readonly settings?: readonly (readonly [number, number])[];
    readonly onPing?: (connection: PeerConnection) => void;
    readonly onFrame?: (connection: PeerConnection, received: ReceivedFrame) => void;
  } = {},
): Promise<FrameServer> {
  // Setting 3 is SETTINGS_MAX_CONCURRENT_STREAMS.
  const values = [
    ...(options.settings ?? []),
    ...(options.maxStreams === undefined ? [] : [[3, options.maxStreams] as const]),
  ];
  const settings = Buffer.concat(values.map(([key, value]) => Buffer.concat([Buffer.of(0, key), numbers(value)])));
  const connections: PeerConnection[] = [];
  const server = createServer((socket) => {
    const connection = new PeerConnection(socket);
    connections.push(connection);
    socket.on("error", () => {});
    socket.write(frame(Frame.SETTINGS, 0, 0, settings));
    let buffer: Buffer = Buffer.alloc(0);
    let begun = false;
    socket.on("data", (data: Buffer) => {
      buffer = Buffer.concat([buffer, data]);
      if (!begun && buffer.length >= PREFACE_BYTES) {
        buffer = buffer.subarray(PREFACE_BYTES);
        begun = true;
      }
      while (begun && buffer.length >= HEADER_BYTES) {
        const length = buffer.readUIntBE(0, 3);
        if (buffer.length < HEADER_BYTES + length) return;
        const [type, flags, stream] = [buffer[3]!, buffer[4]!, buffer.readUInt32BE(5)];
        const payload = buffer.subarray(HEADER_BYTES, HEADER_BYTES + length);
        buffer = buffer.subarray(HEADER_BYTES + length);
        const received = { type, flags, stream, payload };
        connection.frames.push(received);
        options.onFrame?.(connection, received);
        if (type === Frame.SETTINGS && !(flags & ACK)) socket.write(frame(Frame.SETTINGS, ACK, 0, Buffer.alloc(0)));
        else if (type === Frame.PING && !(flags & ACK)) {
          connection.pings.push(performance.now());
          socket.write(frame(Frame.PING, ACK, 0, payload));
          options.onPing?.(connection);
        } else if (type === Frame.HEADERS) onRequest(connection, stream);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, options.host ?? "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    target: options.host === undefined ? `127.0.0.1:${address.port}` : `[${options.host}]:${address.port}`,
    connections,
    close() {
      for (const { socket } of connections) socket.destroy();
      server.close();
    },
  };
}
