/** ZeroMQ as real sockets speak it (test/golden/zmq), in any pieces, damaged, and answered by a socket of our own. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { KvPayloadError, unpackKvBatch } from "../../../../src/engines/kv/msgpack.ts";
import { sequenceOf } from "../../../../src/engines/kv/replay.ts";
import { parseZmqAddress } from "../../../../src/engines/kv/zmq-address.ts";
import { ZmtpError, ZmtpPeer, zmtpMessage } from "../../../../src/engines/kv/zmtp.ts";
import { hashWords } from "../../../support/hash-words.ts";

const golden = (name: string): Uint8Array => readFileSync(join(import.meta.dir, "../../../golden/zmq", `${name}.bin`));

interface Seen {
  readonly sent: Uint8Array[];
  readonly messages: (readonly Uint8Array[])[];
  ready: number;
}

function listen(type: "SUB" | "DEALER"): { readonly peer: ZmtpPeer; readonly seen: Seen } {
  const seen: Seen = { sent: [], messages: [], ready: 0 };
  const peer = new ZmtpPeer(type, {
    send: (bytes) => void seen.sent.push(bytes),
    onReady: () => void seen.ready++,
    onMessage: (frames) => void seen.messages.push(frames),
  });
  peer.greet();
  return { peer, seen };
}

function heard(type: "SUB" | "DEALER", bytes: Uint8Array, piece = bytes.length): Seen {
  const { peer, seen } = listen(type);
  for (let at = 0; at < bytes.length; at += piece) peer.take(bytes.slice(at, at + piece));
  return seen;
}

const PUBLISHED = heard("SUB", golden("publisher")).messages;

describe("a real publisher", () => {
  test("is understood, whatever the pieces", () => {
    expect(PUBLISHED.map(([topic, number]) => [Buffer.from(topic!).toString(), sequenceOf(number)])).toEqual(
      Array.from({ length: 12 }, (_, i) => ["kv", i]),
    );
    for (const piece of [1, 2, 7, 64, 65, 1000]) {
      const seen = heard("SUB", golden("publisher"), piece);
      expect(seen.messages).toEqual(PUBLISHED);
      expect(seen.ready).toBe(1);
      expect(seen.sent.map((bytes) => bytes.length)).toEqual([64, 40]);
    }
  });

  test("tells of its cache in arrays and maps alike", () => {
    const batches = PUBLISHED.map((frames, i) => unpackKvBatch(frames[2]!, i, 0, "vllm"));
    expect(batches.map(({ rank }) => rank)).toEqual([0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    for (const half of [0, 6]) {
      const events = batches.slice(half, half + 6).map((batch) => batch.events);
      const plain = { lora: undefined, cacheSalt: undefined, media: undefined, isLocalDevice: true };
      expect(events[0]).toEqual([
        {
          kind: "stored",
          parent: undefined,
          hashes: hashWords(7n, -1n),
          tokenIds: Uint32Array.of(0, 1, 2, 3, 4, 5, 6, 7),
          blockSize: 4,
          ...plain,
        },
      ]);
      expect(events[1]).toEqual([
        {
          kind: "stored",
          parent: hashWords(-(2n ** 63n)),
          hashes: hashWords(-3n),
          tokenIds: Uint32Array.of(100_000, 1, 2, 3),
          blockSize: 4,
          ...plain,
        },
        { kind: "removed", hashes: hashWords(7n), isLocalDevice: true },
      ]);
      expect(events[2]).toMatchObject([
        { hashes: hashWords(0x18191a1b1c1d1e1fn), parent: hashWords(0n), lora: "tune", isLocalDevice: false },
      ]);
      expect(events[3]).toMatchObject([{ media: [["img"], undefined] }]);
      expect(events[4]).toMatchObject([{ parent: hashWords(1n) }, { kind: "cleared" }]);
      expect(events[5]).toMatchObject([
        { blockSize: 4, isLocalDevice: true, hashes: hashWords(...Array.from({ length: 300 }, (_, i) => BigInt(i))) },
      ]);
    }
  });

  test("of SGLang puts other things behind the medium, which are not taken for a name", () => {
    const [event] = unpackKvBatch(PUBLISHED[2]![2]!, 0, 0, "sglang").events;
    expect(event).toMatchObject({ kind: "stored", lora: "#5" });
  });

  test("says again what it said, with the topic or without", () => {
    const { messages } = heard("DEALER", golden("replay"), 100);
    expect(messages.map((frames) => [frames.length, sequenceOf(frames.at(-2))])).toEqual([
      [4, 9],
      [3, 10],
      [4, 11],
      [3, undefined],
    ]);
    expect(messages[1]!.at(-1)).toEqual(PUBLISHED[10]![2]!);
  });
});

test("what is damaged is refused, or read as something: nothing else is thrown, and nothing loops", () => {
  const bytes = golden("publisher").subarray(0, 1500);
  let refused = 0;
  for (let at = 0; at < bytes.length; at++)
    for (const bits of [1, 0x40, 0xff]) {
      const damaged = Uint8Array.from(bytes);
      damaged[at]! ^= bits;
      try {
        const { messages } = heard("SUB", damaged);
        for (const frames of messages) unpackKvBatch(frames.at(-1)!, 0, 0, "vllm");
      } catch (error) {
        refused++;
        expect(error instanceof ZmtpError || error instanceof KvPayloadError).toBe(true);
      }
    }
  expect(refused).toBeGreaterThan(100);
});

describe("a batch that is damaged", () => {
  test("is a KvPayloadError, or another batch", () => {
    for (const frames of PUBLISHED.slice(0, 5).concat(PUBLISHED.slice(6, 11))) {
      const payload = frames[2]!;
      for (let at = 0; at < payload.length; at++)
        for (const bits of [1, 0x10, 0x80, 0xff]) {
          const damaged = payload.slice();
          damaged[at]! ^= bits;
          try {
            unpackKvBatch(damaged, 0, 0, "vllm");
          } catch (error) {
            if (!(error instanceof KvPayloadError)) throw error;
          }
          try {
            unpackKvBatch(payload.subarray(0, at), 0, 0, "vllm");
            throw new Error("half a batch was taken");
          } catch (error) {
            if (!(error instanceof KvPayloadError)) throw error;
          }
        }
    }
  });
});

describe("a peer", () => {
  const start = golden("publisher").subarray(0, 64);

  test("that is no ZeroMQ socket, or wants more than is offered, is left", () => {
    const greeting = (change: (bytes: Uint8Array) => void) => {
      const bytes = Uint8Array.from(start);
      change(bytes);
      return () => heard("SUB", bytes);
    };
    expect(() => heard("SUB", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"))).toThrow("no ZeroMQ");
    expect(greeting((bytes) => bytes.set([1], 10))).toThrow("old version");
    expect(greeting((bytes) => bytes.set(Buffer.from("PLAIN"), 12))).toThrow("authenticate");
  });

  test("that asks whether one is there is answered, and what it commands besides is let pass", () => {
    const { peer, seen } = listen("SUB");
    peer.take(golden("publisher").subarray(0, 64 + 27));
    peer.take(Buffer.from([4, 9, 4, ...Buffer.from("PING"), 0, 9, 1, 2].slice(0, 11)));
    expect(seen.sent.at(-1)).toEqual(Buffer.from([4, 7, 4, ...Buffer.from("PONG"), 1, 2]));
    peer.take(Buffer.from([4, 4, 3, ...Buffer.from("FOO")]));
    expect(seen.ready).toBe(1);
  });

  test("that never ends its message is left", () => {
    const { peer } = listen("SUB");
    peer.take(golden("publisher").subarray(0, 64 + 27));
    expect(() => peer.take(Buffer.from([3, 0, 0, 0, 1, 0, 0, 0, 0]))).toThrow("more than");
    const parts = listen("SUB");
    parts.peer.take(golden("publisher").subarray(0, 64 + 27));
    expect(() => parts.peer.take(Buffer.alloc(64, Buffer.from([1, 0])))).toThrow("too many frames");
  });
});

test("messages are framed by their length", () => {
  const long = new Uint8Array(300).fill(7);
  const bytes = zmtpMessage([new Uint8Array(0), long]);
  expect(bytes.subarray(0, 11)).toEqual(Buffer.from([1, 0, 2, 0, 0, 0, 0, 0, 0, 1, 44]));
  expect(bytes.length).toBe(311);
});

test("addresses stand for the server's own host where they name none", () => {
  expect(parseZmqAddress("tcp://*:5557", "10.0.0.1")).toEqual({ host: "10.0.0.1", port: 5557 });
  expect(parseZmqAddress("tcp://[::1]:1", "h")).toEqual({ host: "::1", port: 1 });
  expect(parseZmqAddress("tcp://[::]:1", "h")).toEqual({ host: "h", port: 1 });
  expect(parseZmqAddress("tcp://pod-3.svc:5558", "h")).toEqual({ host: "pod-3.svc", port: 5558 });
  expect([parseZmqAddress("ipc:///tmp/x", "h"), parseZmqAddress("tcp://h", "h")]).toEqual([undefined, undefined]);
});
