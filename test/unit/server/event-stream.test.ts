import { afterEach, describe, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { EventStream, type EventStreamOptions } from "../../../src/server/event-stream.ts";
import { until } from "../../support/until.ts";

const PAUSE_AT = 1 << 18;
const CUT_AT = 1 << 25;

class Counts implements EventStreamOptions {
  paused = 0;
  resumed = 0;
  closed = 0;
  readonly over = Promise.withResolvers<void>();
  constructor(readonly heartbeatMs = 60_000) {}
  onPause(): void {
    this.paused++;
  }
  onResume(): void {
    this.resumed++;
  }
  onClosed(): void {
    this.closed++;
    this.over.resolve();
  }
}

let stop: (() => Promise<void>) | undefined;
afterEach(async () => {
  await stop?.();
  stop = undefined;
});

type Answer = (request: Request) => Response | Promise<Response>;

/** The answer of one request, served by Bun alone. */
function serve(answer: Answer): { url: string; port: number } {
  const server = Bun.serve({ port: 0, development: false, idleTimeout: 0, fetch: answer });
  stop = () => server.stop(true);
  return { url: `http://localhost:${server.port}`, port: server.port ?? 0 };
}

/** The same behind Elysia with a header set for all, as an origin's are: then Elysia wraps the response once more. */
function serveByElysia(answer: Answer): { url: string; port: number } {
  const app = new Elysia({ handler: { standardHostname: false } })
    .onRequest(({ set }) => {
      set.headers["access-control-allow-origin"] = "*";
    })
    .get("/", ({ request }) => answer(request));
  return serve(app.fetch);
}

/** A client that reads only while it is told to. */
async function slowReader(port: number) {
  let bytes = 0;
  let tail = "";
  let ended = false;
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_, chunk) {
        bytes += chunk.length;
        tail = (tail + chunk.toString("latin1")).slice(-200);
      },
      close() {
        ended = true;
      },
      error() {
        ended = true;
      },
    },
  });
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return {
    socket,
    get bytes() {
      return bytes;
    },
    get tail() {
      return tail;
    },
    get ended() {
      return ended;
    },
  };
}

const FRAME = `data: ${"x".repeat(8184)}\n\n`; // 8 KiB

describe("frames", () => {
  test("arrive whole and in order, what was written before the response was pulled first", async () => {
    const counts = new Counts();
    const stream = new EventStream(counts);
    const { url } = serve(() => {
      stream.write("data: 1\n\n");
      stream.flush();
      stream.write("data: 2\n\n");
      return stream.response({ "x-request-id": "r" });
    });
    const response = await fetch(url);
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(response.headers.get("x-request-id")).toBe("r");
    stream.write("data: ü😀\n\n");
    stream.flush();
    stream.write("data: 4\n\n");
    stream.end();
    stream.write("data: late\n\n");
    stream.flush();
    expect(await response.text()).toBe("data: 1\n\ndata: 2\n\ndata: ü😀\n\ndata: 4\n\n");
    expect(counts).toMatchObject({ paused: 0, closed: 1 });
  });

  test("that wait for one flush leave in one write", async () => {
    const stream = new EventStream(new Counts());
    stream.write("data: first\n\n");
    const { port } = serve(() => stream.response({}));
    const reader = await slowReader(port);
    await until(() => reader.tail.includes("first"), "the first frame");
    const frames = ["a", "b", "c"].map((letter) => `data: ${letter.repeat(30)}\n\n`);
    for (const frame of frames) stream.write(frame);
    expect(reader.tail).not.toContain("aaa");
    stream.flush();
    await until(() => reader.tail.includes("ccc"), "the others");
    // HTTP/1.1 frames each write by its length.
    const together = frames.join("");
    expect(reader.tail).toEndWith(`\r\n${together.length.toString(16)}\r\n${together}\r\n`);
    stream.end();
    reader.socket.terminate();
  });

  test("ended before the response is pulled", async () => {
    const counts = new Counts();
    const stream = new EventStream(counts);
    const { url } = serve(() => {
      stream.write("data: all\n\n");
      stream.end();
      return stream.response({});
    });
    expect(await (await fetch(url)).text()).toBe("data: all\n\n");
    expect(counts.closed).toBe(1);
  });

  test("cut before the response is pulled: nothing of it is sent, and nothing hangs", async () => {
    const counts = new Counts();
    const stream = new EventStream(counts);
    const { url } = serve(() => {
      stream.write("data: secret\n\n");
      stream.cut();
      return stream.response({});
    });
    const text = await fetch(url)
      .then((response) => response.text())
      .catch(() => "");
    expect(text).toBe("");
    expect(counts.closed).toBe(1);
  });

  test("a cut ends the connection without a proper end", async () => {
    const counts = new Counts();
    const stream = new EventStream(counts);
    const { url } = serve(() => {
      stream.write("data: 1\n\n");
      return stream.response({});
    });
    const response = await fetch(url);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    expect((await reader.read()).done).toBe(false);
    stream.cut();
    stream.cut();
    stream.end();
    await expect(
      (async () => {
        while (!(await reader.read()).done);
      })(),
    ).rejects.toThrow();
    expect(counts.closed).toBe(1);
  });

  test("the status comes at once though there is no event", async () => {
    const stream = new EventStream(new Counts());
    const { url } = serve(() => stream.response({}));
    const response = await fetch(url);
    expect(response.status).toBe(200);
    stream.write("data: 1\n\n");
    stream.end();
    expect(await response.text()).toEndWith("data: 1\n\n");
  });

  test("silence is filled with comments, and only silence", async () => {
    const counts = new Counts(60);
    const stream = new EventStream(counts);
    const began = Date.now();
    const { url } = serve(() => stream.response({}));
    const response = await fetch(url);
    await Bun.sleep(200);
    stream.write("data: 1\n\n");
    stream.end();
    const most = Math.floor((Date.now() - began) / 60) + 1;
    const text = await response.text();
    expect(text).toMatch(new RegExp(`^(:\n\n){1,${most}}data: 1\n\n$`));
    expect(counts.closed).toBe(1);
  });
});

describe.each([
  ["Bun", serve],
  ["Elysia with a header for all", serveByElysia],
])("a slow reader behind %s", (_, serveBy) => {
  test("pauses the producer, resumes it once it reads, and gets every byte", async () => {
    const counts = new Counts();
    const stream = new EventStream(counts);
    const { port } = serveBy(() => stream.response({}));
    const client = await slowReader(port);
    await until(() => client.bytes > 0, "the status line");
    client.socket.pause();
    let frames = 0;
    while (counts.paused === 0) {
      stream.write(FRAME);
      stream.flush();
      if (++frames > 10_000) throw new Error("80 MB taken from the producer, and it was never told to pause");
      if (frames % 16 === 0) await Bun.sleep(0);
    }
    await Bun.sleep(50);
    expect(counts).toMatchObject({ paused: 1, resumed: 0, closed: 0 });
    client.socket.resume();
    await until(() => counts.resumed === 1, "resume");
    stream.write("data: [DONE]\n\n");
    stream.end();
    await counts.over.promise;
    await until(() => client.tail.includes("[DONE]"), "the end");
    expect(client.bytes).toBeGreaterThan(frames * FRAME.length);
    expect(counts).toMatchObject({ paused: 1, resumed: 1, closed: 1 });
    client.socket.end();
  });

  test("is cut off at the cap, if the producer goes on all the same", async () => {
    const counts = new Counts();
    const stream = new EventStream(counts);
    const { port } = serveBy(() => stream.response({}));
    const client = await slowReader(port);
    await until(() => client.bytes > 0, "the status line");
    client.socket.pause();
    let written = 0;
    while (counts.closed === 0) {
      stream.write(FRAME);
      stream.flush();
      written += FRAME.length;
      if (written > 2 * CUT_AT) throw new Error("never cut off");
      if (written % (1 << 20) === 0) await Bun.sleep(0);
    }
    expect(written).toBeGreaterThan(CUT_AT);
    client.socket.resume();
    await until(() => client.ended, "the end of the connection");
    expect(client.bytes).toBeLessThan(written);
    expect(counts.closed).toBe(1);
  });
});

test("a producer that was paused before the response was pulled is resumed", async () => {
  const counts = new Counts();
  const stream = new EventStream(counts);
  const { url } = serve(() => {
    while (counts.paused === 0) {
      stream.write(FRAME);
      stream.flush();
    }
    return stream.response({});
  });
  const response = await fetch(url);
  const text = response.text();
  await until(() => counts.resumed === 1, "resume");
  stream.end();
  expect((await text).length).toBeGreaterThan(PAUSE_AT);
  expect(counts).toMatchObject({ paused: 1, resumed: 1, closed: 1 });
});

describe("a client that leaves", () => {
  test.each([
    ["reading", false],
    ["not reading", true],
  ])("while %s closes the stream once", async (_, full) => {
    const counts = new Counts();
    const stream = new EventStream(counts);
    const { port } = serve(() => stream.response({}));
    const client = await slowReader(port);
    await until(() => client.bytes > 0, "the status line");
    if (full) {
      client.socket.pause();
      for (let i = 0; i < 20_000 && counts.paused === 0; i++) {
        stream.write(FRAME);
        stream.flush();
        if (i % 16 === 0) await Bun.sleep(0);
      }
    }
    client.socket.terminate();
    await counts.over.promise;
    for (let i = 0; i < 10; i++) {
      stream.write(FRAME);
      stream.flush();
      await Bun.sleep(1);
    }
    stream.end();
    stream.cut();
    stream.close();
    expect(counts.closed).toBe(1);
  });
});
