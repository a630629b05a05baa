/** TLS of the channels: who is believed, and who gets in. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Channel } from "../../../src/engines/channel.ts";
import { GrpcStatus } from "../../../src/engines/grpc-error.ts";
import {
  ca,
  clientCert,
  clientKey,
  elsewhereCert,
  otherCa,
  serverCert,
  serverKey,
} from "../../support/certificates.ts";
import { startTestServer, type TestServer } from "../../support/grpc-server.ts";
import { CHANNELS, failure, json, NOTHING, OPTIONS, read, text } from "./channels.ts";

setDefaultTimeout(20_000);

describe.each(CHANNELS)("TLS, channel %s", (_name, create) => {
  let server: TestServer | undefined;
  let channel: Channel | undefined;
  afterEach(async () => {
    channel?.close();
    await server?.kill();
  });
  const open = (host: string, tls: { ca?: string; cert?: string; key?: string } | undefined): Channel => {
    channel = create(`${host}:${server?.port}`, { ...OPTIONS, connectTimeoutMs: 2000, ...(tls ? { tls } : {}) });
    return channel;
  };
  const tls = { cert: serverCert, key: serverKey };

  test.each(["localhost", "127.0.0.1"])("the right CA, at %s", async (host) => {
    server = await startTestServer({ tls });
    expect(text(await open(host, { ca }).unary("/test.Bytes/Echo", json("safe")))).toBe('"safe"');
  });

  test.each(["localhost", "127.0.0.1"])("a CA that did not sign, at %s", async (host) => {
    server = await startTestServer({ tls });
    expect((await failure(open(host, { ca: otherCa }).unary("/test.Bytes/Echo", NOTHING))).code).toBe(
      GrpcStatus.UNAVAILABLE,
    );
  });

  test.each(["localhost", "127.0.0.1"])("a certificate for another host, at %s", async (host) => {
    server = await startTestServer({ tls: { cert: elsewhereCert, key: serverKey } });
    expect((await failure(open(host, { ca }).unary("/test.Bytes/Echo", NOTHING))).code).toBe(GrpcStatus.UNAVAILABLE);
  });

  test("the system's CAs do not know this one", async () => {
    server = await startTestServer({ tls });
    expect((await failure(open("localhost", {}).unary("/test.Bytes/Echo", NOTHING))).code).toBe(GrpcStatus.UNAVAILABLE);
  });

  test("a client certificate, when the server asks for one", async () => {
    server = await startTestServer({ tls: { ...tls, ca } });
    expect(
      text(await open("127.0.0.1", { ca, cert: clientCert, key: clientKey }).unary("/test.Bytes/Echo", json(1))),
    ).toBe("1");
    channel?.close();
    expect((await failure(open("127.0.0.1", { ca }).unary("/test.Bytes/Echo", NOTHING))).code).toBe(
      GrpcStatus.UNAVAILABLE,
    );
  });

  test.each([{ ca: "not a certificate" }, { ca, cert: "neither", key: "nor" }])(
    "PEM texts that can't be read: %o",
    async (bad) => {
      server = await startTestServer({ tls });
      for (let i = 0; i < 2; i++)
        expect((await failure(open("127.0.0.1", bad).unary("/test.Bytes/Echo", NOTHING))).code).toBe(
          GrpcStatus.UNAVAILABLE,
        );
    },
  );

  test("large messages both ways, and a stream that is paused", async () => {
    server = await startTestServer({ tls });
    const secure = open("localhost", { ca });
    const big = Uint8Array.from({ length: 5 << 20 }, (_, i) => i % 251);
    expect(Buffer.compare(await secure.unary("/test.Bytes/Echo", big), big)).toBe(0);
    const reading = read(secure, "/test.Bytes/Stream", json({ count: 400, size: 16_384 }), (n, { call }) => {
      if (n !== 20) return;
      call.pause();
      setTimeout(() => call.resume(), 100);
    });
    expect(await reading.done).toBeUndefined();
    expect(reading.numbers).toEqual(Array.from({ length: 400 }, (_, i) => i));
  });

  test("plain HTTP/2 to a TLS server", async () => {
    server = await startTestServer({ tls });
    expect((await failure(open("127.0.0.1", undefined).unary("/test.Bytes/Echo", NOTHING))).code).toBe(
      GrpcStatus.UNAVAILABLE,
    );
  });

  test("TLS to a plain server", async () => {
    server = await startTestServer();
    expect((await failure(open("127.0.0.1", { ca }).unary("/test.Bytes/Echo", NOTHING))).code).toBe(
      GrpcStatus.UNAVAILABLE,
    );
  });
});
