import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { GatewayError } from "../../../src/errors.ts";
import { readJson } from "../../../src/server/body.ts";
import { rawBody } from "../../../src/server/raw-body.ts";
import { rawRequest } from "./gateway.ts";

const LIMIT = 1000;
let server: ReturnType<typeof Bun.serve>;
beforeAll(() => {
  server = Bun.serve({
    port: 0,
    maxRequestBodySize: 1 << 20,
    fetch: async (request) => {
      try {
        return Response.json({ value: await readJson(request, { limit: LIMIT }) });
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        return Response.json({ code: error.code, message: error.message }, { status: error.status });
      }
    },
  });
});
afterAll(() => server.stop(true));

type Answer = { status: number; value?: unknown; code?: string; message?: string };

async function send(
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`http://localhost:${server.port}`, { method: "POST", body, headers });
  return { status: response.status, ...((await response.json()) as object) };
}

/** Sent without content-length, in chunks. */
function chunked(...parts: (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async start(controller) {
      for (const part of parts) {
        controller.enqueue(typeof part === "string" ? new TextEncoder().encode(part) : part);
        await Bun.sleep(1);
      }
      controller.close();
    },
  });
}

const bytes = (text: string) => new TextEncoder().encode(text);
const padded = (length: number) => `{"a":"${"x".repeat(length - 8)}"}`;

describe("size", () => {
  test("up to the limit is taken, with and without a content-length", async () => {
    expect((await send(padded(LIMIT))).status).toBe(200);
    expect((await send(chunked(padded(LIMIT).slice(0, 500), padded(LIMIT).slice(500)))).status).toBe(200);
  });

  test("above is a 413, with and without a content-length", async () => {
    for (const body of [
      padded(LIMIT + 1),
      chunked(padded(LIMIT), " "),
      chunked(...new Array<string>(50).fill(" ".repeat(100))),
    ])
      expect(await send(body)).toMatchObject({ status: 413, code: "payload_too_large" });
  });

  test("bytes count, not characters", async () => {
    expect((await send(`{"a":"${"ü".repeat(496)}"}`)).status).toBe(200);
    expect((await send(`{"a":"${"ü".repeat(497)}"}`)).status).toBe(413);
  });

  test("an announced size above the limit is refused before it is sent", async () => {
    const head = `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${LIMIT + 1}\r\nConnection: close\r\n\r\n`;
    expect(await rawRequest(server.port ?? 0, head)).toStartWith("HTTP/1.1 413");
  });
});

describe("text", () => {
  test("every character arrives as it was sent, wherever the upload is cut", async () => {
    const body = bytes('{"text":"ü日本😀\\u00e9\\ud83d\\ude00"}');
    for (let cut = 1; cut < body.length; cut += 3)
      expect((await send(chunked(body.slice(0, cut), body.slice(cut)))).value).toEqual({ text: "ü日本😀é😀" });
  });

  test("a byte order mark is skipped", async () => {
    expect((await send(Uint8Array.of(0xef, 0xbb, 0xbf, ...bytes('{"a":1}')))).value).toEqual({ a: 1 });
  });

  test.each<[string, Uint8Array<ArrayBuffer>]>([
    ["a lone continuation byte", Uint8Array.of(0x7b, 0x22, 0x80, 0x22, 0x3a, 0x31, 0x7d)],
    ["a cut-off character", Uint8Array.of(...bytes('{"a":"'), 0xf0, 0x9f, 0x98, ...bytes('"}'))],
    ["Latin-1", Uint8Array.of(...bytes('{"a":"'), 0xfc, ...bytes('"}'))],
    ["an encoded surrogate", Uint8Array.of(...bytes('{"a":"'), 0xed, 0xa0, 0x80, ...bytes('"}'))],
    ["UTF-16", new Uint8Array(Uint16Array.from('{"a":"ü"}', (c) => c.charCodeAt(0)).buffer)],
  ])("%s is a 400", async (_, body) => {
    expect(await send(body)).toMatchObject({ status: 400, code: "json_parse_error" });
  });
});

describe("JSON", () => {
  test.each(["", "  \n", "{", '{"a":}', "{'a':1}", "{} {}", "null", "1", '"text"', "[]", "true", "NaN"])(
    "%j is a 400",
    async (body) => {
      expect(await send(body)).toMatchObject({ status: 400, code: "json_parse_error" });
    },
  );

  test("a mistake's message has a bounded length", async () => {
    const answer = await send(`{"a": ${"x".repeat(900)}}`);
    expect(answer.status).toBe(400);
    expect(answer.message?.length).toBeLessThan(300);
  });

  const nested = (depth: number, open: string, close: string) => `{"a":${open.repeat(depth)}1${close.repeat(depth)}}`;

  test("nesting has a limit", async () => {
    expect((await send(nested(100, "[", "]"))).status).toBe(200);
    expect(await send(nested(400, "[", "]"))).toMatchObject({ status: 400, code: "json_parse_error" });
    expect(await send(nested(150, '{"a":', "}"))).toMatchObject({ status: 200 });
  });

  test("nesting without end is refused, not overflowed", async () => {
    const deep = (text: string) =>
      readJson(new Request("http://x/", { method: "POST", body: text }), { limit: 1 << 24 }).then(
        () => "taken",
        (error: unknown) => (error as GatewayError).code,
      );
    expect(await deep(nested(100_000, "[", "]"))).toBe("json_parse_error");
    expect(await deep(nested(100_000, '{"a":', "}"))).toBe("json_parse_error");
    expect(await deep(nested(256, "[", "]"))).toBe("json_parse_error");
    expect(await deep(nested(255, "[", "]"))).toBe("taken");
  });
});

describe("content-encoding", () => {
  test("identity is taken, everything else is a 415", async () => {
    expect((await send("{}", { "content-encoding": "Identity" })).status).toBe(200);
    for (const encoding of ["gzip", "deflate", "br", "zstd", "identity, gzip"])
      expect(await send("{}", { "content-encoding": encoding })).toMatchObject({
        status: 415,
        code: "unsupported_media_type",
      });
  });
});

test("an upload that breaks off is the client's leaving", async () => {
  const body = new ReadableStream({
    pull(controller) {
      controller.error(new Error("gone"));
    },
  });
  await expect(readJson(new Request("http://x/", { method: "POST", body }), { limit: LIMIT })).rejects.toMatchObject({
    status: 499,
  });
});

test("the text of a body is kept where a prompt may print parts of it", async () => {
  const read = (body: string) =>
    readJson(new Request("http://x/", { method: "POST", body }), { limit: LIMIT }) as Promise<object>;
  for (const name of ["tools", "functions", "documents", "response_format", "chat_template_kwargs"]) {
    const text = `{"${name}": [1.0]}`;
    expect(rawBody(await read(text))).toBe(text);
  }
  expect(rawBody(await read('{"messages": []}'))).toBeUndefined();
  const withCall = (called: string) => `{"messages": [null, 5, {"tool_calls": [7, {"function": ${called}}]}]}`;
  const sent = withCall('{"arguments": {"a": 1.0}}');
  expect(rawBody(await read(sent))).toBe(sent);
  const old = '{"messages": [{"function_call": {"arguments": {}}}]}';
  expect(rawBody(await read(old))).toBe(old);
  for (const called of ['{"arguments": "{}"}', '{"arguments": null}', "null"])
    expect(rawBody(await read(withCall(called)))).toBeUndefined();
});
