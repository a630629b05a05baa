/** What only our own framing can be asked, frame by frame: flow control, odd frames, breaches of the protocol. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createServer } from "node:net";
import type { Channel, ChannelOptions } from "../../../src/engines/channel.ts";
import { createFramingChannel } from "../../../src/engines/framing-channel.ts";
import { GrpcStatus } from "../../../src/engines/grpc-error.ts";
import {
  END_HEADERS,
  END_STREAM,
  Frame,
  type FrameServer,
  frame,
  literal,
  numbers,
  type PeerConnection,
  RESPONSE,
  startFrameServer,
} from "../../support/frame-server.ts";
import { startTestServer } from "../../support/grpc-server.ts";
import { failure, json, NOTHING, OPTIONS, read, sleep, text, until } from "./channels.ts";

setDefaultTimeout(20_000);

const CANCEL = 8;
const PADDED = 8;
const PRIORITY = 32;
const ACK = 1;
const OK = literal("grpc-status", "0");
const INITIAL_WINDOW_SIZE = 4;

const peers: FrameServer[] = [];
const channels: Channel[] = [];
afterEach(() => {
  for (const channel of channels.splice(0)) channel.close();
  for (const peer of peers.splice(0)) peer.close();
});
async function serve(...parameters: Parameters<typeof startFrameServer>): Promise<FrameServer> {
  const peer = await startFrameServer(...parameters);
  peers.push(peer);
  return peer;
}
function open(target: string, options: Partial<ChannelOptions> = {}): Channel {
  const channel = createFramingChannel(target, { ...OPTIONS, ...options });
  channels.push(channel);
  return channel;
}
const message = (bytes: Uint8Array): Buffer => Buffer.concat([Buffer.of(0), numbers(bytes.length), bytes]);
const numbered = (n: number, size = 4): Buffer => message(Buffer.concat([numbers(n), Buffer.alloc(size - 4, 7)]));
const framesOf = (connection: PeerConnection | undefined, type: number, stream?: number) =>
  (connection?.frames ?? []).filter((one) => one.type === type && (stream === undefined || one.stream === stream));
/** Answers a call with one message and OK. */
function answer(connection: PeerConnection, stream: number): void {
  connection.respond(stream);
  connection.send(Frame.DATA, 0, stream, numbered(5));
  connection.send(Frame.HEADERS, END_HEADERS | END_STREAM, stream, OK);
}

describe("frames", () => {
  test("padding, priorities, split headers, unknown frames and frames in pieces change nothing", async () => {
    const peer = await serve((connection, stream) => {
      const padded = Buffer.concat([Buffer.of(3), numbered(0), Buffer.alloc(3)]);
      const prioritised = Buffer.concat([
        Buffer.of(2),
        numbers(0),
        Buffer.of(16),
        RESPONSE.subarray(0, 4),
        Buffer.alloc(2),
      ]);
      const all = Buffer.concat([
        frame(Frame.HEADERS, PADDED | PRIORITY, stream, prioritised),
        frame(Frame.CONTINUATION, 0, stream, RESPONSE.subarray(4, 5)),
        frame(Frame.CONTINUATION, END_HEADERS, stream, RESPONSE.subarray(5)),
        frame(Frame.PRIORITY, 0, stream, Buffer.alloc(5)),
        frame(99, 255, stream, Buffer.from("unknown")),
        frame(Frame.DATA, PADDED, stream, padded),
        frame(Frame.DATA, 0, stream, Buffer.concat([numbered(1), numbered(2), numbered(3).subarray(0, 7)])),
        frame(Frame.DATA, 0, stream, Buffer.alloc(0)),
        frame(Frame.DATA, 0, stream, numbered(3).subarray(7)),
        frame(Frame.HEADERS, END_HEADERS | END_STREAM, stream, OK),
      ]);
      void (async () => {
        for (let at = 0; at < all.length; at += 7) {
          connection.socket.write(all.subarray(at, at + 7));
          await sleep(1);
        }
      })();
    });
    const reading = read(open(peer.target), "/a/b", NOTHING);
    expect(await reading.done).toBeUndefined();
    expect(reading.numbers).toEqual([0, 1, 2, 3]);
    // Only messages deserve an idle.
    expect(reading.idles).toBeWithin(1, 5);
  });

  test("a call is idle once for each read of the socket, as soon as its last message in it was given out", async () => {
    const streams: number[] = [];
    const peer = await serve((connection, stream) => {
      streams.push(stream);
      if (streams.length < 3) return;
      connection.socket.write(
        Buffer.concat([
          ...streams.map((id) => frame(Frame.HEADERS, END_HEADERS, id, RESPONSE)),
          ...[0, 1].flatMap((n) => streams.map((id) => frame(Frame.DATA, 0, id, numbered(n)))),
        ]),
      );
    });
    const channel = open(peer.target);
    const events: string[] = [];
    const calls = ["a", "b", "c"].map((name) =>
      channel.serverStream("/a/b", NOTHING, {
        onMessage: (bytes, start) => events.push(`${name}${bytes[start + 3]}`),
        onIdle: () => events.push(`${name} idle`),
        onEnd: () => events.push(`${name} end`),
      }),
    );
    await until(() => events.length >= 9);
    expect(events).toEqual(["a0", "b0", "c0", "a1", "a idle", "b1", "b idle", "c1", "c idle"]);
    for (const call of calls) call.cancel();
  });

  test("pings are answered with their bytes, settings are acknowledged", async () => {
    const payload = Buffer.from("pingpong");
    const peer = await serve((connection, stream) => {
      connection.send(Frame.PING, 0, 0, payload);
      answer(connection, stream);
    });
    await open(peer.target).unary("/a/b", NOTHING);
    await until(() => framesOf(peer.connections[0], Frame.PING).length === 1);
    const [ping] = framesOf(peer.connections[0], Frame.PING);
    expect(ping).toMatchObject({ flags: ACK, stream: 0 });
    expect(Buffer.compare(ping!.payload, payload)).toBe(0);
    expect(framesOf(peer.connections[0], Frame.SETTINGS).map(({ flags }) => flags)).toEqual([0, ACK]);
  });

  test("a smaller table of headers is taken note of once", async () => {
    const peer = await serve((connection, stream) => answer(connection, stream), { settings: [[1, 0]] });
    const channel = open(peer.target);
    await channel.unary("/a/b", NOTHING);
    await channel.unary("/a/b", NOTHING);
    const first = framesOf(peer.connections[0], Frame.HEADERS).map(({ payload }) => payload[0]);
    expect(first).toEqual([0x20, 0x83]);
  });

  test("informational headers come before the answer; a status may come before the end of the stream", async () => {
    const peer = await serve((connection, stream) => {
      // Static index 8 with a name only: `:status: 103`.
      connection.send(Frame.HEADERS, END_HEADERS, stream, literal(":status", "103"));
      if (stream === 1) answer(connection, stream);
      else {
        connection.send(Frame.HEADERS, END_HEADERS, stream, Buffer.concat([RESPONSE, literal("grpc-status", "5")]));
        connection.send(Frame.DATA, END_STREAM, stream, Buffer.alloc(0));
      }
    });
    const channel = open(peer.target);
    expect(await channel.unary("/a/b", NOTHING)).toHaveLength(4);
    expect((await failure(channel.unary("/a/b", NOTHING))).code).toBe(GrpcStatus.NOT_FOUND);
  });

  test("a header list over 64 KB is refused, its call alone", async () => {
    const peer = await serve((connection, stream) => {
      if (stream !== 1) return answer(connection, stream);
      // One entry of 4 KB into the table, then 100 references to it: a bomb of 400 KB in a frame of 4 KB.
      const value = "x".repeat(4000);
      const entry = Buffer.concat([
        Buffer.of(0x40, 1),
        Buffer.from("a"),
        Buffer.of(0x7f, 0xa1, 0x1e),
        Buffer.from(value),
      ]);
      connection.send(Frame.HEADERS, END_HEADERS, stream, Buffer.concat([RESPONSE, entry, Buffer.alloc(100, 0xbe)]));
    });
    const channel = open(peer.target);
    const error = await failure(channel.unary("/a/b", NOTHING));
    expect(error).toMatchObject({ code: GrpcStatus.INTERNAL, details: "headers over the limit of 64 KB" });
    expect(await channel.unary("/a/b", NOTHING)).toHaveLength(4);
    expect(peer.connections).toHaveLength(1);
  });

  test.each<[string, (stream: number) => Buffer, number]>([
    ["a frame over 16 KB", (stream) => frame(Frame.DATA, 0, stream, Buffer.alloc(16_385)), 6],
    ["data of a stream that never was", () => frame(Frame.DATA, 0, 77, Buffer.alloc(1)), 1],
    ["headers of an even stream", () => frame(Frame.HEADERS, END_HEADERS, 2, RESPONSE), 1],
    ["headers that are cut short", (stream) => frame(Frame.HEADERS, END_HEADERS, stream, RESPONSE.subarray(0, 9)), 9],
    ["an unknown table entry", (stream) => frame(Frame.HEADERS, END_HEADERS, stream, Buffer.of(0xfe)), 9],
    [
      "data inside a header block",
      (stream) =>
        Buffer.concat([frame(Frame.HEADERS, 0, stream, RESPONSE), frame(Frame.DATA, 0, stream, Buffer.alloc(1))]),
      1,
    ],
    ["a CONTINUATION alone", (stream) => frame(Frame.CONTINUATION, END_HEADERS, stream, RESPONSE), 1],
    [
      "endless CONTINUATIONs",
      (stream) =>
        Buffer.concat([
          frame(Frame.HEADERS, 0, stream, RESPONSE),
          ...Array.from({ length: 200 }, () => frame(Frame.CONTINUATION, 0, stream, Buffer.alloc(0))),
        ]),
      11,
    ],
    ["padding longer than the frame", (stream) => frame(Frame.DATA, PADDED, stream, Buffer.of(9, 1, 2)), 1],
    ["a push", (stream) => frame(Frame.PUSH_PROMISE, END_HEADERS, stream, Buffer.alloc(8)), 1],
    ["a window increment of 0", () => frame(Frame.WINDOW_UPDATE, 0, 0, numbers(0)), 1],
    ["a window beyond the largest", () => frame(Frame.WINDOW_UPDATE, 0, 0, numbers(0x7fffffff)), 3],
    [
      "an initial window beyond the largest",
      () => frame(Frame.SETTINGS, 0, 0, Buffer.concat([Buffer.of(0, 4), numbers(0x80000000)])),
      3,
    ],
    [
      "a maximum frame below the least",
      () => frame(Frame.SETTINGS, 0, 0, Buffer.concat([Buffer.of(0, 5), numbers(1)])),
      1,
    ],
    ["settings of odd length", () => frame(Frame.SETTINGS, 0, 0, Buffer.alloc(5)), 6],
    ["a ping of seven bytes", () => frame(Frame.PING, 0, 0, Buffer.alloc(7)), 6],
    ["a GOAWAY that is too short", () => frame(Frame.GOAWAY, 0, 0, Buffer.alloc(7)), 6],
    ["a reset that is too short", (stream) => frame(Frame.RST_STREAM, 0, stream, Buffer.alloc(3)), 6],
  ])("%s ends the connection with a GOAWAY, and the next call takes a new one", async (_what, bytes, code) => {
    const peer = await serve((connection, stream) => {
      if (connection !== peer.connections[0]) return answer(connection, stream);
      connection.socket.write(bytes(stream));
    });
    const channel = open(peer.target);
    expect((await failure(channel.unary("/a/b", NOTHING))).code).toBe(GrpcStatus.UNAVAILABLE);
    await until(() => framesOf(peer.connections[0], Frame.GOAWAY).length === 1);
    expect(Buffer.from(framesOf(peer.connections[0], Frame.GOAWAY)[0]!.payload).readUInt32BE(4)).toBe(code);
    expect(await channel.unary("/a/b", NOTHING)).toHaveLength(4);
  });

  test("data before headers fails its call alone", async () => {
    const peer = await serve((connection, stream) => {
      if (stream === 1) connection.send(Frame.DATA, 0, stream, numbered(0));
      else answer(connection, stream);
    });
    const channel = open(peer.target);
    expect((await failure(channel.unary("/a/b", NOTHING))).code).toBe(GrpcStatus.INTERNAL);
    expect(await channel.unary("/a/b", NOTHING)).toHaveLength(4);
    expect(peer.connections).toHaveLength(1);
  });
});

describe("cancelling", () => {
  test("resets the stream at once, with CANCEL; what was under way is dropped", async () => {
    const peer = await serve((connection, stream) => {
      connection.respond(stream);
      connection.send(Frame.DATA, 0, stream, numbered(0));
      setTimeout(() => connection.send(Frame.DATA, 0, stream, numbered(1)), 30);
    });
    const channel = open(peer.target);
    const reading = read(channel, "/a/b", NOTHING, (_n, { call }) => call.cancel());
    expect((await reading.done)?.code).toBe(GrpcStatus.CANCELLED);
    await until(() => framesOf(peer.connections[0], Frame.RST_STREAM).length === 1);
    const [reset] = framesOf(peer.connections[0], Frame.RST_STREAM);
    expect(Buffer.from(reset!.payload).readUInt32BE(0)).toBe(CANCEL);
    await sleep(60);
    expect(reading.numbers).toEqual([0]);
    expect(framesOf(peer.connections[0], Frame.GOAWAY)).toHaveLength(0);
  });

  test("in the turn of the call: nothing is sent, also on a connection that is up", async () => {
    const peer = await serve((connection, stream) => answer(connection, stream));
    const channel = open(peer.target);
    await channel.unary("/a/b", NOTHING);
    const readings = Array.from({ length: 50 }, () => read(channel, "/a/b", NOTHING));
    for (const reading of readings) reading.call.cancel();
    await channel.unary("/a/b", NOTHING);
    expect(framesOf(peer.connections[0], Frame.HEADERS)).toHaveLength(2);
    expect(framesOf(peer.connections[0], Frame.RST_STREAM)).toHaveLength(0);
  });

  test("2000 calls at once costs a server that minds no more than a new connection", async () => {
    const server = await startTestServer();
    const channel = open(server.target);
    const readings = Array.from({ length: 2000 }, () =>
      read(channel, "/test.Bytes/Stream", json({ count: 100_000, delayMs: 50 })),
    );
    await until(() => readings.every((reading) => reading.numbers.length > 0), 15_000);
    for (const reading of readings) reading.call.cancel();
    for (const reading of readings) expect((await reading.done)?.code).toBe(GrpcStatus.CANCELLED);
    await sleep(100);
    let reply = "";
    await until(async () => {
      reply = await channel.unary("/test.Bytes/Echo", json("again")).then(text, () => "");
      return reply !== "";
    });
    expect(reply).toBe('"again"');
    await server.kill();
  });
});

describe("sending", () => {
  test.each([
    [[[INITIAL_WINDOW_SIZE, 1]] as const, 1],
    [[[INITIAL_WINDOW_SIZE, 1000]] as const, 700],
    [
      [
        [INITIAL_WINDOW_SIZE, 1 << 20],
        [5, 40_000],
      ] as const,
      50_000,
    ],
  ])("a request keeps to the windows of the stream and the connection: %j", async (settings, step) => {
    const request = Uint8Array.from({ length: step === 1 ? 40 : 300_000 }, (_, i) => i % 251);
    let connectionWindow = 65_535;
    let streamWindow = settings[0][1] as number;
    const largest = settings[1]?.[1] ?? 16_384;
    const pieces: Uint8Array[] = [];
    const problems: string[] = [];
    const peer = await serve((connection, stream) => connection.respond(stream), {
      settings,
      onFrame(connection, { type, flags, stream, payload }) {
        if (type !== Frame.DATA) return;
        connectionWindow -= payload.length;
        streamWindow -= payload.length;
        if (connectionWindow < 0 || streamWindow < 0) problems.push("window");
        if (payload.length > largest) problems.push("frame size");
        pieces.push(payload);
        if (flags & END_STREAM) {
          connection.send(Frame.DATA, 0, stream, numbered(1));
          connection.send(Frame.HEADERS, END_HEADERS | END_STREAM, stream, OK);
          return;
        }
        if (connectionWindow < 20_000) {
          connectionWindow += step;
          connection.send(Frame.WINDOW_UPDATE, 0, 0, numbers(step));
        }
        if (streamWindow < 20_000) {
          streamWindow += step;
          connection.send(Frame.WINDOW_UPDATE, 0, stream, numbers(step));
        }
      },
    });
    await open(peer.target).unary("/a/b", request);
    expect(problems).toEqual([]);
    expect(Buffer.compare(Buffer.concat(pieces), message(request))).toBe(0);
  });

  test("an initial window that shrinks and grows is applied to streams that run", async () => {
    const request = new Uint8Array(2000).fill(1);
    let received = 0;
    const peer = await serve(() => {}, {
      settings: [[INITIAL_WINDOW_SIZE, 1000]],
      onFrame(connection, { type, flags, stream, payload }) {
        if (type !== Frame.DATA) return;
        received += payload.length;
        if (flags & END_STREAM) answer(connection, stream);
      },
    });
    const call = open(peer.target).unary("/a/b", request);
    const setWindow = (value: number): void =>
      peer.connections[0]!.send(
        Frame.SETTINGS,
        0,
        0,
        Buffer.concat([Buffer.of(0, INITIAL_WINDOW_SIZE), numbers(value)]),
      );
    await until(() => received === 1000);
    setWindow(100);
    // The stream's window is now -900: an update of 900 opens nothing, ten more open ten.
    peer.connections[0]!.send(Frame.WINDOW_UPDATE, 0, 1, numbers(900));
    await sleep(30);
    expect(received).toBe(1000);
    peer.connections[0]!.send(Frame.WINDOW_UPDATE, 0, 1, numbers(10));
    await until(() => received === 1010);
    setWindow(5000);
    expect(await call).toHaveLength(4);
    expect(received).toBe(2005);
  });

  test("a large request lets small ones by, and an answer before its end stops it", async () => {
    const sizes: [number, number][] = [];
    const peer = await serve(() => {}, {
      settings: [[INITIAL_WINDOW_SIZE, 30_000]],
      onFrame(connection, { type, flags, stream, payload }) {
        if (type !== Frame.DATA) return;
        sizes.push([stream, payload.length]);
        if (flags & END_STREAM) answer(connection, stream);
      },
    });
    const channel = open(peer.target);
    const large = failure(channel.unary("/a/b", new Uint8Array(1 << 20)));
    expect(await channel.unary("/a/b", json("small"))).toHaveLength(4);
    const connection = peer.connections[0]!;
    connection.send(Frame.HEADERS, END_HEADERS | END_STREAM, 1, Buffer.concat([RESPONSE, literal("grpc-status", "8")]));
    expect((await large).code).toBe(GrpcStatus.RESOURCE_EXHAUSTED);
    await until(() => framesOf(connection, Frame.RST_STREAM, 1).length === 1);
    expect(sizes.filter(([stream]) => stream === 1).reduce((sum, [, size]) => sum + size, 0)).toBe(30_000);
  });

  test("deadlines and metadata travel", async () => {
    const peer = await serve((connection, stream) => answer(connection, stream));
    await open(peer.target).unary("/a/b", NOTHING, { deadlineMs: 60_000, metadata: { "x-key": "value" } });
    const block = Buffer.from(framesOf(peer.connections[0], Frame.HEADERS)[0]!.payload).toString("latin1");
    expect(block).toMatch(/grpc-timeout.[56]\d{4}m/s);
    expect(block).toContain("x-key\x05value");
  });
});

describe("receiving", () => {
  const WINDOW = 1 << 20;
  const SIZE = 10_000;

  test("what is read is given back to the stream, in large steps", async () => {
    const peer = await serve((connection, stream) => {
      connection.respond(stream);
      for (let i = 0; i < 40; i++) connection.send(Frame.DATA, 0, stream, numbered(i, SIZE));
    });
    const reading = read(open(peer.target), "/a/b", NOTHING);
    await until(() => reading.numbers.length === 40);
    await until(() => framesOf(peer.connections[0], Frame.WINDOW_UPDATE, 1).length > 0);
    const updates = framesOf(peer.connections[0], Frame.WINDOW_UPDATE, 1);
    const given = updates.reduce((sum, { payload }) => sum + Buffer.from(payload).readUInt32BE(0), 0);
    expect(given).toBeWithin(WINDOW / 4, 40 * (SIZE + 5) + 1);
    expect(updates).toHaveLength(1);
    reading.call.cancel();
  });

  test("a paused call gives nothing out, gives nothing back, and keeps all up to its window", async () => {
    const count = Math.floor(WINDOW / (SIZE + 5));
    const peer = await serve((connection, stream) => {
      connection.respond(stream);
      for (let i = 0; i < count; i++) connection.send(Frame.DATA, 0, stream, numbered(i, SIZE));
      connection.send(Frame.PING, 0, 0, Buffer.alloc(8));
    });
    const reading = read(open(peer.target), "/a/b", NOTHING, (n, { call }) => {
      if (n === 2 || n === 50) call.pause();
    });
    await until(() => framesOf(peer.connections[0], Frame.PING).length === 1);
    const connection = peer.connections[0]!;
    expect(reading.numbers).toEqual([0, 1, 2]);
    expect(framesOf(connection, Frame.WINDOW_UPDATE, 1)).toHaveLength(0);
    reading.call.resume();
    expect(reading.numbers).toHaveLength(3);
    await until(() => reading.numbers.length > 3);
    await sleep(10);
    expect(reading.numbers).toHaveLength(51);
    connection.send(Frame.HEADERS, END_HEADERS | END_STREAM, 1, OK);
    await sleep(20);
    expect(reading.ends).toBe(0);
    reading.call.resume();
    expect(await reading.done).toBeUndefined();
    expect(reading.numbers).toEqual(Array.from({ length: count }, (_, i) => i));
    expect(framesOf(connection, Frame.WINDOW_UPDATE, 1).length).toBeGreaterThan(0);
  });

  test("a peer that sends more than the window fails its call alone", async () => {
    const peer = await serve((connection, stream) => {
      if (stream !== 1) return answer(connection, stream);
      connection.respond(stream);
      for (let i = 0; i < 120; i++) connection.send(Frame.DATA, 0, stream, numbered(i, SIZE));
    });
    const channel = open(peer.target);
    const reading = read(channel, "/a/b", NOTHING);
    reading.call.pause();
    expect((await reading.done)?.code).toBe(GrpcStatus.INTERNAL);
    expect(await channel.unary("/a/b", NOTHING)).toHaveLength(4);
    const [reset] = framesOf(peer.connections[0], Frame.RST_STREAM, 1);
    expect(Buffer.from(reset!.payload).readUInt32BE(0)).toBe(3);
  });

  test("a paused call whose stream is over outlives its connection, and ends with its channel", async () => {
    const peer = await serve((connection, stream) => answer(connection, stream));
    const channel = open(peer.target);
    const [first, second] = [read(channel, "/a/b", NOTHING), read(channel, "/a/b", NOTHING)];
    first.call.pause();
    await second.done;
    peer.connections[0]!.socket.destroy();
    await sleep(30);
    expect(first.ends).toBe(0);
    first.call.resume();
    expect(await first.done).toBeUndefined();
    expect(first.numbers).toEqual([5]);
    const third = read(channel, "/a/b", NOTHING);
    third.call.pause();
    await channel.unary("/a/b", NOTHING);
    channel.close();
    expect((await third.done)?.code).toBe(GrpcStatus.UNAVAILABLE);
    expect(third.numbers).toEqual([]);
  });

  test("a peer that speaks something else", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.end("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const begin = performance.now();
    const channel = open(`127.0.0.1:${port}`, { connectTimeoutMs: 15_000 });
    expect((await failure(channel.unary("/a/b", NOTHING))).code).toBe(GrpcStatus.UNAVAILABLE);
    expect(performance.now() - begin).toBeLessThan(7500); // it does not wait for the timeout
    server.close();
  });
});
