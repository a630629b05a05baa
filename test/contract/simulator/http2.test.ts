import { describe, expect, test } from "bun:test";
import http2 from "node:http2";
import { withEngine } from "./harness.ts";

const GENERATE = "/vllm.grpc.engine.VllmEngine/Generate";
const ECHO = { output: "echo", speed: "instant" } as const;

/** A framed GenerateRequest: prompt [7, 8], streaming, temperature 0, `maxTokens` (below 16384) tokens. */
function request(maxTokens: number): Buffer {
  const sampling = [0x0d, 0, 0, 0, 0, 0x40, (maxTokens & 0x7f) | 0x80, maxTokens >> 7];
  const body = [0x12, 4, 0x12, 2, 7, 8, 0x22, sampling.length, ...sampling, 0x28, 1];
  return Buffer.from([0, 0, 0, 0, body.length, ...body]);
}

const HEADERS = { ":method": "POST", ":path": GENERATE, "content-type": "application/grpc", te: "trailers" };

interface Seen {
  bytes: number;
  trailers: Record<string, unknown> | undefined;
}

function open(
  session: http2.ClientHttp2Session,
  maxTokens: number,
): { stream: http2.ClientHttp2Stream; seen: Seen; done: Promise<void> } {
  const stream = session.request(HEADERS);
  const seen: Seen = { bytes: 0, trailers: undefined };
  stream.on("trailers", (trailers) => {
    seen.trailers = trailers;
  });
  const done = new Promise<void>((resolve) => {
    stream.on("close", resolve);
    stream.on("error", () => {
      // `close` follows.
    });
  });
  stream.end(request(maxTokens));
  return { stream, seen, done };
}

async function session(
  port: number,
  windowSize: number,
  body: (s: http2.ClientHttp2Session) => Promise<void>,
): Promise<void> {
  const s = http2.connect(`http://127.0.0.1:${port}`, {
    settings: { initialWindowSize: windowSize, enablePush: false },
  });
  s.on("error", () => {
    // Tests look at streams.
  });
  try {
    await body(s);
  } finally {
    s.destroy();
  }
}

describe("HTTP/2 with node:http2", () => {
  test("a small window is honoured, and everything arrives once the reader reads", () =>
    withEngine(ECHO, (_client, engine) =>
      session(engine.port, 1000, async (s) => {
        const { stream, seen, done } = open(s, 8000);
        stream.on("data", (d: Buffer) => {
          seen.bytes += d.length;
        });
        await done;
        expect(seen.trailers?.["grpc-status"]).toBe("0");
        // A message a token, whatever the window, and the last one.
        expect(engine.stats()).toMatchObject({ tokensSent: 8000, messagesSent: 8001, open: 0 });
        expect(seen.bytes).toBeGreaterThan(8000 * 12);
      }),
    ));

  test("a reader that stops holds up itself only; with merging it gets few messages later", () =>
    withEngine({ ...ECHO, mergeLagging: true }, (_client, engine) =>
      session(engine.port, 2000, async (s) => {
        const slow = open(s, 16_000);
        slow.stream.pause();
        const quick = open(s, 1000);
        quick.stream.on("data", (d: Buffer) => {
          quick.seen.bytes += d.length;
        });
        await quick.done;
        expect(quick.seen.trailers?.["grpc-status"]).toBe("0");
        slow.stream.on("data", (d: Buffer) => {
          slow.seen.bytes += d.length;
        });
        slow.stream.resume();
        await slow.done;
        expect(slow.seen.trailers?.["grpc-status"]).toBe("0");
        expect(engine.stats().tokensSent).toBe(17_000);
        expect(engine.stats().messagesSent).toBeLessThan(4000);
      }),
    ));

  test("pings are answered, cancels too, and the connection goes on", () =>
    withEngine({ ...ECHO, speed: "1" }, (_client, engine) =>
      session(engine.port, 65_535, async (s) => {
        const pinged = await new Promise<boolean>((resolve) => s.ping((error) => resolve(error === null)));
        expect(pinged).toBe(true);
        const { stream, done } = open(s, 16_000);
        await new Promise((resolve) => stream.once("data", resolve));
        stream.close(http2.constants.NGHTTP2_CANCEL);
        await done;
        const next = open(s, 3);
        next.stream.resume();
        await next.done;
        expect(next.seen.trailers?.["grpc-status"]).toBe("0");
        expect(engine.stats()).toMatchObject({ abortedByCancel: 1, open: 0 });
      }),
    ));

  test("what is not gRPC, not HTTP/2, or has no message is refused", () =>
    withEngine(ECHO, (_client, engine) =>
      session(engine.port, 65_535, async (s) => {
        const status = async (headers: http2.OutgoingHttpHeaders, body: Buffer) => {
          const stream = s.request(headers);
          const answered = new Promise<unknown>((resolve) => stream.on("response", (h) => resolve(h["grpc-status"])));
          stream.on("error", () => {
            // Looked at through the response.
          });
          stream.end(body);
          return answered;
        };
        expect(await status({ ...HEADERS, "content-type": "text/plain" }, Buffer.alloc(0))).toBe("13");
        expect(await status(HEADERS, Buffer.alloc(0))).toBe("13");
        expect(await status({ ...HEADERS, ":path": "/no/such" }, request(1))).toBe("12");
        expect(await status(HEADERS, Buffer.from([1, 0, 0, 0, 0]))).toBe("12");
        const closed = await new Promise<boolean>((resolve) => {
          void Bun.connect({
            hostname: "127.0.0.1",
            port: engine.port,
            socket: {
              open: (socket) => void socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
              data: () => undefined,
              close: () => resolve(true),
              end: (socket) => void socket.end(),
            },
          });
        });
        expect(closed).toBe(true);
      }),
    ));
});
