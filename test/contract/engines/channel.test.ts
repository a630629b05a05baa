/** What every channel must do, against a gRPC server in another process. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Channel } from "../../../src/engines/channel.ts";
import { GrpcStatus } from "../../../src/engines/grpc-error.ts";
import { startTestServer, type TestServer } from "../../support/grpc-server.ts";
import { CHANNELS_AND_LATE, failure, json, NOTHING, OPTIONS, read, sleep, stats, text, until } from "./channels.ts";

setDefaultTimeout(20_000);

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.kill());

describe.each(CHANNELS_AND_LATE)("channel %s", (_name, create) => {
  let channel: Channel;
  beforeAll(() => {
    channel = create(server.target, OPTIONS);
  });
  afterAll(() => channel.close());

  test("unary call", async () => {
    expect(text(await channel.unary("/test.Bytes/Echo", json("grüße")))).toBe('"grüße"');
    expect(await channel.unary("/test.Bytes/Echo", NOTHING)).toHaveLength(0);
  });

  test("an error keeps its text and its trailers", async () => {
    const error = await failure(channel.unary("/test.Bytes/Fail", NOTHING));
    expect(error.code).toBe(GrpcStatus.RESOURCE_EXHAUSTED);
    expect(error.details).toBe("kv full: 100% é");
    expect(error.metadata["x-why"]).toBe("full");
    expect(error.metadata["x-why-bin"]).toEqual(Uint8Array.of(1, 2, 255));
  });

  test("an error after the first message", async () => {
    const seen: string[] = [];
    const error = await new Promise<unknown>((resolve) =>
      channel.serverStream("/test.Bytes/FailLater", NOTHING, {
        onMessage: (bytes, start, end) => seen.push(text(bytes.subarray(start, end))),
        onEnd: resolve,
      }),
    );
    expect(seen).toEqual(["one"]);
    expect(error).toMatchObject({ code: GrpcStatus.NOT_FOUND, details: "gone" });
  });

  test("a method that is not there", async () => {
    expect((await failure(channel.unary("/test.Bytes/Nope", NOTHING))).code).toBe(GrpcStatus.UNIMPLEMENTED);
  });

  test("deadline: the call ends in time and the server sees it", async () => {
    const before = await stats(channel);
    const start = performance.now();
    const error = await failure(channel.unary("/test.Bytes/Hang", NOTHING, { deadlineMs: 150 }));
    expect(error.code).toBe(GrpcStatus.DEADLINE_EXCEEDED);
    expect(performance.now() - start).toBeWithin(140, 1000);
    await until(async () => (await stats(channel)).cancelled === before.cancelled + 1);
  });

  test("200 messages come whole and in order, with an idle after the last", async () => {
    const reading = read(channel, "/test.Bytes/Stream", json({ count: 200, size: 1000 }));
    expect(await reading.done).toBeUndefined();
    expect(reading.numbers).toEqual(Array.from({ length: 200 }, (_, i) => i));
    expect(reading.idles).toBeWithin(1, 201);
  });

  test("an idle follows each message that comes alone", async () => {
    let idlesAtMessage = -1;
    let lastAt = performance.now() - 1000;
    let alone = 0;
    const reading = read(channel, "/test.Bytes/Stream", json({ count: 12, delayMs: 60 }), (_n, r) => {
      const now = performance.now();
      // after a pause of this process some come together
      if (now - lastAt > 30) {
        alone++;
        expect(r.idles).toBeGreaterThan(idlesAtMessage);
      }
      lastAt = now;
      idlesAtMessage = r.idles;
    });
    expect(await reading.done).toBeUndefined();
    expect(reading.numbers).toHaveLength(12);
    expect(alone).toBeGreaterThan(2);
  });

  test("cancel before the connection is up: nothing is ever sent", async () => {
    const before = await stats(channel);
    const fresh = create(server.target, OPTIONS);
    const reading = read(fresh, "/test.Bytes/Stream", json({ count: 5 }));
    reading.call.cancel();
    expect((await reading.done)?.code).toBe(GrpcStatus.CANCELLED);
    // A later call on the same connection shows that the connection came up.
    expect((await stats(fresh)).started).toBe(before.started);
    await sleep(50);
    expect((await stats(channel)).started).toBe(before.started);
    expect(reading.ends).toBe(1);
    fresh.close();
  });

  test("cancel in the middle: ends here at once, and the server stops", async () => {
    const before = await stats(channel);
    const reading = read(channel, "/test.Bytes/Stream", json({ count: 1_000_000, delayMs: 1 }), (n, r) => {
      if (n !== 19) return;
      r.call.cancel();
      expect(r.ends).toBe(1);
    });
    expect((await reading.done)?.code).toBe(GrpcStatus.CANCELLED);
    await until(async () => {
      const now = await stats(channel);
      return now.cancelled === before.cancelled + 1 && now.active === 0;
    });
    expect(reading.numbers).toHaveLength(20);
    expect(reading.ends).toBe(1);
  });

  test("a signal cancels, also one that fired before the call", async () => {
    const abort = new AbortController();
    const reading = read(
      channel,
      "/test.Bytes/Stream",
      json({ count: 100_000, delayMs: 1 }),
      (n) => n === 3 && abort.abort(),
      {
        signal: abort.signal,
      },
    );
    expect((await reading.done)?.code).toBe(GrpcStatus.CANCELLED);
    const late = read(channel, "/test.Bytes/Stream", json({ count: 3 }), undefined, { signal: abort.signal });
    expect(late.ends).toBe(0);
    expect((await late.done)?.code).toBe(GrpcStatus.CANCELLED);
    expect(late.numbers).toHaveLength(0);
  });

  test("a paused stream stops the server and nobody else, and loses nothing", async () => {
    const before = (await stats(channel)).sent;
    const size = 16_384;
    const count = 600;
    const slow = read(channel, "/test.Bytes/Stream", json({ count, size }), (n, r) => {
      if (n === 9) r.call.pause();
    });
    await until(() => slow.numbers.length >= 10);
    const neighbour = read(channel, "/test.Bytes/Stream", json({ count: 100 }));
    expect(await neighbour.done).toBeUndefined();
    await sleep(300);
    // The rest of what was being read may still come, but no more than one window's worth leaves the server.
    expect(slow.numbers.length).toBeLessThan(60);
    expect((await stats(channel)).sent - before - 100).toBeLessThan(300);
    expect(slow.ends).toBe(0);
    slow.call.resume();
    expect(await slow.done).toBeUndefined();
    expect(slow.numbers).toEqual(Array.from({ length: count }, (_, i) => i));
  });

  test("a stream that ends while it is paused gives all messages before its end", async () => {
    const reading = read(channel, "/test.Bytes/Stream", json({ count: 200 }), (n, r) => {
      if (n === 0) r.call.pause();
    });
    await until(() => reading.numbers.length > 0);
    await sleep(200);
    expect(reading.ends).toBe(0);
    reading.call.resume();
    expect(await reading.done).toBeUndefined();
    expect(reading.numbers).toHaveLength(200);
  });

  test("a call paused before it was sent reads nothing until resumed", async () => {
    const fresh = create(server.target, OPTIONS);
    const reading = read(fresh, "/test.Bytes/Stream", json({ count: 3, delayMs: 40 }));
    reading.call.pause();
    await sleep(250);
    expect(reading.numbers.length).toBeLessThan(3);
    expect(reading.ends).toBe(0);
    reading.call.resume();
    expect(await reading.done).toBeUndefined();
    expect(reading.numbers).toHaveLength(3);
    fresh.close();
  });

  test("16 MB in both directions", async () => {
    const big = new Uint8Array(16 << 20).fill(3);
    big[big.length - 1] = 9;
    const back = await channel.unary("/test.Bytes/Echo", big);
    expect(back.length).toBe(big.length);
    expect(Buffer.compare(back, big)).toBe(0);
  });

  test("a reply over the limit fails its call alone", async () => {
    const neighbour = read(channel, "/test.Bytes/Stream", json({ count: 50, delayMs: 2 }));
    const error = await failure(channel.unary("/test.Bytes/Size", json({ size: (32 << 20) + 1 })));
    expect(error.code).toBe(GrpcStatus.INTERNAL);
    expect(error.details).toContain("over the limit");
    expect(await neighbour.done).toBeUndefined();
    expect(neighbour.numbers).toHaveLength(50);
  });

  test("metadata reaches the server, bytes too", async () => {
    const bytes = Uint8Array.of(0, 255, 10, 13, 200);
    const seen = JSON.parse(
      text(
        await channel.unary("/test.Bytes/Metadata", NOTHING, {
          metadata: { traceparent: "00-ab-cd-01", "x-raw-bin": bytes, "x-empty": "" },
        }),
      ),
    );
    expect(seen.traceparent).toBe("00-ab-cd-01");
    expect(seen["x-raw-bin"]).toEqual([...bytes]);
  });

  test("metadata over 7 KB is refused here and kills no neighbour", async () => {
    const neighbour = read(channel, "/test.Bytes/Stream", json({ count: 50, delayMs: 2 }));
    await until(() => neighbour.numbers.length > 0);
    const metadata = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`x-m${i}`, "v".repeat(1000)]));
    const error = await failure(channel.unary("/test.Bytes/Metadata", NOTHING, { metadata }));
    expect(error.code).toBe(GrpcStatus.INVALID_ARGUMENT);
    expect(error.details).toContain("metadata");
    expect(await neighbour.done).toBeUndefined();
    const allowed = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`x-m${i}`, "v".repeat(1000)]));
    const seen = JSON.parse(text(await channel.unary("/test.Bytes/Metadata", NOTHING, { metadata: allowed })));
    expect(seen["x-m5"]).toHaveLength(1000);
  });

  test.each([
    ["a line break in a value", { "x-a": "a\r\nx-b: c" }],
    ["a capital letter in a key", { "X-A": "a" }],
    ["a reserved key", { "grpc-timeout": "1m" }],
    ["text under a -bin key", { "x-a-bin": "text" }],
  ])("metadata with %s is refused", async (_what, metadata) => {
    expect((await failure(channel.unary("/test.Bytes/Echo", NOTHING, { metadata }))).code).toBe(
      GrpcStatus.INVALID_ARGUMENT,
    );
  });

  test("300 calls at once", async () => {
    const all = Array.from({ length: 300 }, () => read(channel, "/test.Bytes/Stream", json({ count: 10 })));
    for (const reading of all) expect(await reading.done).toBeUndefined();
    expect(all.every((reading) => reading.numbers.length === 10)).toBe(true);
  });

  test("a receiver that throws fails its own call only", async () => {
    const error = await new Promise<unknown>((resolve) =>
      channel.serverStream("/test.Bytes/Stream", json({ count: 5 }), {
        onMessage() {
          throw new Error("receiver");
        },
        onEnd: resolve,
      }),
    );
    expect(error).toMatchObject({ code: GrpcStatus.INTERNAL });
    expect(text(await channel.unary("/test.Bytes/Echo", json(1)))).toBe("1");
  });

  test("close ends running calls, and later ones", async () => {
    const own = create(server.target, OPTIONS);
    const reading = read(own, "/test.Bytes/Stream", json({ count: 100_000, delayMs: 1 }));
    await until(() => reading.numbers.length > 0);
    own.close();
    expect((await reading.done)?.code).toBe(GrpcStatus.UNAVAILABLE);
    expect((await failure(own.unary("/test.Bytes/Echo", NOTHING))).code).toBe(GrpcStatus.UNAVAILABLE);
    expect(reading.ends).toBe(1);
  });
});
