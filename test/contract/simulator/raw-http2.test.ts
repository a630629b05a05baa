/** Frames written and read by hand, for what well-behaved clients never send. */
import { expect, test } from "bun:test";
import { settle, until, withEngine } from "./harness.ts";

const ECHO = { output: "echo", speed: "instant" } as const;
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
const CONTINUATION = 9;

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Buffer;
}

function frame(type: number, flags: number, id: number, payload: Uint8Array | number[] = []): Buffer {
  const bytes = Buffer.alloc(9 + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(id, 5);
  bytes.set(payload, 9);
  return bytes;
}

const uint32 = (value: number): number[] => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
const literal = (name: string, value: string): number[] => [
  0,
  name.length,
  ...Buffer.from(name),
  value.length,
  ...Buffer.from(value),
];
const REQUEST_HEADERS = [
  0x83,
  0x86,
  ...literal(":path", "/vllm.grpc.engine.VllmEngine/Generate"),
  ...literal("content-type", "application/grpc"),
];

/** A framed GenerateRequest for `maxTokens` (128 to 16383) tokens of echo. */
function message(maxTokens: number): number[] {
  const sampling = [0x0d, 0, 0, 0, 0, 0x40, (maxTokens & 0x7f) | 0x80, maxTokens >> 7];
  const body = [0x12, 4, 0x12, 2, 7, 8, 0x22, sampling.length, ...sampling, 0x28, 1];
  return [0, 0, 0, 0, body.length, ...body];
}

async function connection(port: number, body: (peer: Peer) => Promise<void>): Promise<void> {
  const peer = new Peer();
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data: (_, chunk) => peer.receive(chunk),
      close: () => {
        peer.closed = true;
      },
      end: (s) => {
        peer.closed = true;
        s.end();
      },
    },
  });
  peer.write = (...frames) => void socket.write(Buffer.concat(frames));
  try {
    await body(peer);
  } finally {
    socket.terminate();
  }
}

class Peer {
  readonly frames: Frame[] = [];
  closed = false;
  write: (...frames: Uint8Array[]) => void = () => undefined;
  private rest = Buffer.alloc(0);

  receive(chunk: Uint8Array): void {
    let bytes = Buffer.concat([this.rest, chunk]);
    while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
      const end = 9 + bytes.readUIntBE(0, 3);
      this.frames.push({
        type: bytes[3]!,
        flags: bytes[4]!,
        id: bytes.readUInt32BE(5),
        payload: Buffer.from(bytes.subarray(9, end)),
      });
      bytes = bytes.subarray(end);
    }
    this.rest = Buffer.from(bytes);
  }

  dataBytes(id?: number): number {
    return this.frames
      .filter((f) => f.type === DATA && (id === undefined || f.id === id))
      .reduce((sum, f) => sum + f.payload.length, 0);
  }

  /** Waits until no more frames come for a while. */
  async quiet(): Promise<void> {
    for (let before = -1; before !== this.frames.length; ) {
      before = this.frames.length;
      await settle(4);
    }
  }

  ended(id: number): boolean {
    return this.frames.some((f) => f.type === HEADERS && f.id === id && (f.flags & 1) !== 0);
  }
}

test("the connection's window is kept to the byte, whatever the streams' windows allow", () =>
  withEngine(ECHO, (_client, engine) =>
    connection(engine.port, async (peer) => {
      peer.write(PREFACE, frame(SETTINGS, 0, 0, [0, 4, ...uint32(0x7fffffff)]));
      for (const id of [1, 3, 5])
        peer.write(frame(HEADERS, 4, id, REQUEST_HEADERS), frame(DATA, 1, id, message(16_000)));
      await until(() => peer.dataBytes() >= 65_535, "the window is used up");
      await peer.quiet();
      expect(peer.dataBytes()).toBe(65_535);
      // The engine is done with them; only the calls wait.
      await until(() => engine.stats().engine.running === 0, "the engine is done");
      expect(engine.stats()).toMatchObject({ open: 3, finished: 0, engine: { running: 0, blocksInUse: 0 } });
      peer.write(frame(WINDOW_UPDATE, 0, 0, uint32(1000)));
      await until(() => peer.dataBytes() >= 66_535, "the grant is used up");
      await peer.quiet();
      expect(peer.dataBytes()).toBe(66_535);
      peer.write(frame(WINDOW_UPDATE, 0, 0, uint32(10_000_000)));
      await until(() => [1, 3, 5].every((id) => peer.ended(id)), "all streams end");
      expect(engine.stats()).toMatchObject({ open: 0, finished: 3, tokensSent: 48_000, messagesSent: 48_003 });
    }),
  ));

test("a smaller initial window takes back what open streams were granted", () =>
  withEngine({ ...ECHO, speed: "1", decodeBaseMs: 1, decodePerReqMs: 0 }, (_client, engine) =>
    connection(engine.port, async (peer) => {
      peer.write(PREFACE, frame(SETTINGS, 0, 0, [0, 4, ...uint32(100)]));
      peer.write(frame(HEADERS, 4, 1, REQUEST_HEADERS), frame(DATA, 1, 1, message(300)));
      await until(() => peer.dataBytes(1) >= 100, "the window is used up");
      await Bun.sleep(50);
      expect(peer.dataBytes(1)).toBe(100);
      // 100 below what was sent: 50 more bytes of window still allow nothing.
      peer.write(frame(SETTINGS, 0, 0, [0, 4, ...uint32(0)]), frame(WINDOW_UPDATE, 0, 1, uint32(50)));
      await Bun.sleep(50);
      expect(peer.dataBytes(1)).toBe(100);
      peer.write(frame(SETTINGS, 0, 0, [0, 4, ...uint32(100_000)]));
      await until(() => peer.ended(1), "the stream ends");
    }),
  ));

test("split headers, padding, priorities, unknown frames and single bytes are understood", () =>
  withEngine(ECHO, (_client, engine) =>
    connection(engine.port, async (peer) => {
      const padded = (bytes: number[]): number[] => [3, ...bytes, 0, 0, 0];
      const request = message(200);
      const bytes = Buffer.concat([
        PREFACE,
        frame(SETTINGS, 0, 0, []),
        frame(0xbe, 0xff, 7, [1, 2, 3]),
        frame(HEADERS, 8 | 32, 1, padded([0, 0, 0, 0, 16, ...REQUEST_HEADERS.slice(0, 10)])),
        frame(CONTINUATION, 0, 1, REQUEST_HEADERS.slice(10, 20)),
        frame(CONTINUATION, 4, 1, REQUEST_HEADERS.slice(20)),
        frame(DATA, 8, 1, padded(request.slice(0, 7))),
        frame(DATA, 0, 1, request.slice(7)),
        frame(DATA, 1, 1, []),
      ]);
      for (const byte of bytes) {
        peer.write(Uint8Array.of(byte));
        if (byte % 8 === 0) await Bun.sleep(0);
      }
      await until(() => peer.ended(1), "the stream ends");
      expect(engine.stats()).toMatchObject({ received: 1, finished: 1, tokensSent: 200 });
    }),
  ));

test("a request that ends with its headers has no message", () =>
  withEngine(ECHO, (_client, engine) =>
    connection(engine.port, async (peer) => {
      peer.write(PREFACE, frame(SETTINGS, 0, 0, []), frame(HEADERS, 5, 1, REQUEST_HEADERS));
      await until(() => peer.ended(1), "the refusal");
      const answer = peer.frames.find((f) => f.type === HEADERS && f.id === 1);
      expect(answer?.payload.toString("latin1")).toContain("the request ended without a message");
    }),
  ));

test("breaches end the connection with their code", async () => {
  const open = frame(HEADERS, 4, 1, REQUEST_HEADERS);
  const breaches: [string, Buffer[], number][] = [
    ["a frame over the size limit", [frame(DATA, 0, 1, new Uint8Array(16_385))], 6],
    ["header compression that fails", [frame(HEADERS, 4, 1, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff])], 9],
    ["an interrupted header block", [frame(HEADERS, 0, 1, REQUEST_HEADERS), frame(DATA, 0, 1, [])], 1],
    ["a window increment of 0", [frame(WINDOW_UPDATE, 0, 0, uint32(0))], 1],
    ["a window over its limit", [frame(WINDOW_UPDATE, 0, 0, uint32(0x7fffffff))], 3],
    ["padding longer than the frame", [open, frame(DATA, 8, 1, [9, 1])], 1],
    ["a push promise", [frame(5, 0, 1, [])], 1],
  ];
  await withEngine(ECHO, async (client, engine) => {
    for (const [name, frames, code] of breaches)
      await connection(engine.port, async (peer) => {
        peer.write(PREFACE, frame(SETTINGS, 0, 0, []), ...frames);
        await until(() => peer.closed, name);
        const last = peer.frames.at(-1);
        expect({ name, type: last?.type, code: last?.payload.readUInt32BE(4), closed: peer.closed }).toEqual({
          name,
          type: GOAWAY,
          code,
          closed: true,
        });
      });
    // The engine itself goes on.
    expect(
      await client.unary("HealthCheck", "vllm.grpc.engine.HealthCheckRequest", "vllm.grpc.engine.HealthCheckResponse"),
    ).toMatchObject({
      healthy: true,
    });
  });
});

test("frames for streams that are gone are ignored; a call that ends early tells the client to stop sending", () =>
  withEngine(ECHO, (_client, engine) =>
    connection(engine.port, async (peer) => {
      peer.write(PREFACE, frame(SETTINGS, 0, 0, []), frame(HEADERS, 4, 1, REQUEST_HEADERS));
      // Answered at once, although the client has not ended its side.
      peer.write(frame(DATA, 0, 1, message(150)));
      await until(() => peer.ended(1), "the stream ends");
      expect(peer.frames.filter((f) => f.type === RST_STREAM).map((f) => [f.id, f.payload.readUInt32BE(0)])).toEqual([
        [1, 0],
      ]);
      peer.write(
        frame(DATA, 1, 1, [1, 2, 3]),
        frame(WINDOW_UPDATE, 0, 1, uint32(5)),
        frame(RST_STREAM, 0, 1, uint32(8)),
      );
      peer.write(frame(HEADERS, 4, 3, REQUEST_HEADERS), frame(DATA, 1, 3, message(150)));
      await until(() => peer.ended(3), "the next stream ends");
      expect(engine.stats()).toMatchObject({ finished: 2, abortedByCancel: 0 });
    }),
  ));
