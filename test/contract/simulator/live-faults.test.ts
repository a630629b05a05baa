/** Faults that are set while the engine runs, and those that concern more than one call. */
import { describe, expect, test } from "bun:test";
import { connect as connectHttp2 } from "node:http2";
import { createConnection } from "node:net";
import * as grpc from "@grpc/grpc-js";
import type { Simulator } from "../../../src/simulator/simulator.ts";
import { ask, type Client, connect, until, withEngine, withScript } from "./harness.ts";

/** "hello" in the demo model's tokens, and something else. */
const HELLO = [14990];
const OTHER = [9707];
const TEN = { max_tokens: 10, ignore_eos: true };

async function control(engine: Simulator, method: string, path: string, body?: unknown): Promise<[number, unknown]> {
  const reply = await fetch(`http://127.0.0.1:${engine.statsPort}${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return [reply.status, await reply.json()];
}

const healthy = (client: Client) =>
  client
    .unary("HealthCheck", "vllm.grpc.engine.HealthCheckRequest", "vllm.grpc.engine.HealthCheckResponse")
    .then(({ healthy }) => healthy);

describe("set over HTTP", () => {
  test("a fault, for prompts with a text, so many times; forgotten when told", () =>
    withEngine({ speed: "instant" }, async (client, engine) => {
      const [code, list] = await control(engine, "POST", "/faults", {
        fault: { kind: "status", code: "UNAVAILABLE", message: "gone", after_tokens: 2 },
        contains: "hello",
        times: 1,
      });
      expect([code, list]).toEqual([200, [expect.objectContaining({ pattern: "hello", times: 1, uses: 0 })]]);
      expect(await client.generate(ask(OTHER, TEN))).toMatchObject({ status: 0 });
      const hit = await client.generate(ask(HELLO, TEN));
      expect(hit).toMatchObject({ status: grpc.status.UNAVAILABLE, details: "gone", ids: { length: 2 } });
      expect(await client.generate(ask(HELLO, TEN))).toMatchObject({ status: 0, ids: { length: 10 } });
      expect(await control(engine, "GET", "/faults")).toMatchObject([200, [{ uses: 1 }]]);
      await control(engine, "POST", "/faults", { fault: "hang" });
      expect(await control(engine, "DELETE", "/faults")).toEqual([200, []]);
      expect(await client.generate(ask(HELLO, TEN))).toMatchObject({ status: 0 });
      expect(engine.stats()).toMatchObject({ faulted: 1, finished: 3 });
    }));

  test("a share of the prompts: none, all, some", () =>
    withEngine({ speed: "instant" }, async (client, engine) => {
      const failures = async (probability: number, count: number) => {
        engine.clearFaults();
        engine.setFault({ fault: { kind: "status", code: "INTERNAL" }, probability });
        let failed = 0;
        for (let i = 0; i < count; i++)
          if ((await client.generate(ask(HELLO, { max_tokens: 1 }))).status !== 0) failed++;
        return failed;
      };
      expect(await failures(0, 20)).toBe(0);
      expect(await failures(1, 20)).toBe(20);
      const some = await failures(0.5, 60);
      expect(some).toBeGreaterThan(5);
      expect(some).toBeLessThan(55);
    }));

  test("a delay alone; what a script's rule says stays", () =>
    withScript("- token_ids: [5, 6, 7]", async (client, engine) => {
      engine.setFault({ delay_ms: 80, times: 1 });
      const before = performance.now();
      expect((await client.generate(ask(HELLO))).ids).toEqual([5, 6, 7, 151645]);
      expect(performance.now() - before).toBeGreaterThan(75);
    }));

  test("what is wrong is told", () =>
    withEngine({ output: "echo" }, async (_client, engine) => {
      for (const [path, body, message] of [
        ["/faults", { fault: "explode" }, "fault.fault.kind: must be hang"],
        ["/faults", {}, "has neither fault nor delay_ms"],
        ["/faults", { fault: "hang", text: "hi" }, "fault.text: is not known"],
        ["/faults", { fault: "hang", probability: 2 }, "fault.probability: must be a number from 0 to 1"],
        ["/faults", { fault: "hang", contains: "x" }, "reads no prompts"],
        ["/freeze?ms=soon", undefined, "ms: must be a number"],
        ["/restart", { block_size: 0 }, "block_size: must be"],
      ] as const) {
        const [status, reply] = await control(engine, "POST", path, body);
        expect(status).toBe(400);
        expect((reply as { error: string }).error).toContain(message);
      }
      expect((await fetch(`http://127.0.0.1:${engine.statsPort}/nothing`)).status).toBe(404);
    }));
});

describe("messages", () => {
  const play = (fault: string, body: (client: Client, engine: Simulator) => Promise<void>) =>
    withScript(`- token_ids: [1, 2, 3, 4, 5]\n  fault: ${fault}`, body);

  test("trailers come with the status", () =>
    play(
      '{ kind: status, code: UNAVAILABLE, trailers: { Retry-After: 3, grpc-retry-pushback-ms: "250" } }',
      async (client) => {
        const call = client.channel.makeServerStreamRequest(
          "/vllm.grpc.engine.VllmEngine/Generate",
          (bytes: Buffer) => bytes,
          (bytes) => bytes,
          Buffer.from([0x12, 3, 0x12, 1, 5]),
        );
        call.on("error", () => {});
        const status = await new Promise<grpc.StatusObject>((resolve) => call.on("status", resolve));
        expect(status.code).toBe(grpc.status.UNAVAILABLE);
        expect(status.metadata.get("retry-after")).toEqual(["3"]);
        expect(status.metadata.get("grpc-retry-pushback-ms")).toEqual(["250"]);
      },
    ));

  test("a doubled one, streamed and whole", () =>
    play("{ kind: double, after_tokens: 3 }", async (client) => {
      const { chunks, ids } = await client.generate(ask(HELLO));
      expect(ids).toEqual([1, 2, 3, 3, 4, 5, 151645]);
      expect(chunks[3]).toEqual(chunks[2]!);
      expect((await client.generate(ask(HELLO, {}, { stream: false }))).completes).toHaveLength(2);
    }));

  test("one that can't be decoded: the client ends the call", () =>
    play("{ kind: garble, after_tokens: 2 }", async (client, engine) => {
      const { status, chunks } = await client.generate(ask(HELLO));
      expect(status).toBe(grpc.status.INTERNAL);
      expect(chunks.length).toBeLessThan(3);
      await until(() => engine.stats().open === 0, "the call is gone");
    }));

  test("one that is too large for the usual client, and says nothing", () =>
    play("{ kind: oversize, after_tokens: 2, bytes: 5000000 }", async (client, engine) => {
      // The client of these tests has no limit.
      expect((await client.generate(ask(HELLO))).ids).toEqual([1, 2, 3, 4, 5, 151645]);
      const careful = new grpc.Client(`127.0.0.1:${engine.port}`, grpc.credentials.createInsecure());
      const call = careful.makeServerStreamRequest(
        "/vllm.grpc.engine.VllmEngine/Generate",
        (bytes: Buffer) => bytes,
        (bytes) => bytes,
        Buffer.from([0x12, 3, 0x12, 1, 5, 0x28, 1]),
      );
      call.on("data", () => {}).on("error", () => {});
      const status = await new Promise<grpc.StatusObject>((resolve) => call.on("status", resolve));
      careful.close();
      expect(status.code).toBe(grpc.status.RESOURCE_EXHAUSTED);
    }));

  test("a wrong digest of the bundle, and then the right one", () =>
    withScript("- fault: bad-digest\n  times: 1\n- token_ids: [7]", async (client) => {
      const digest = () =>
        new Promise<string>((resolve) => {
          let last = "";
          client.channel
            .makeServerStreamRequest(
              "/vllm.grpc.engine.VllmEngine/GetTokenizer",
              (bytes: Buffer) => bytes,
              (bytes) => bytes.subarray(-64).toString("latin1"),
              Buffer.alloc(0),
            )
            .on("data", (text: string) => {
              last = text;
            })
            .on("end", () => resolve(last));
        });
      expect((await client.generate(ask(HELLO))).ids[0]).toBe(7);
      expect(await digest()).toBe("0".repeat(64));
      expect(await digest()).toMatch(/^(?!0{64})[0-9a-f]{64}$/);
    }));
});

describe("standing still", () => {
  test("a stalled request keeps its place and its stream; others go on, and it can be cancelled", () =>
    withScript("- contains: hello\n  fault: { kind: stall, after_tokens: 3 }", async (client, engine) => {
      let cancel = () => {};
      let seen = 0;
      const stalled = client.generate(ask(HELLO, TEN), (count, call) => {
        seen = count;
        cancel = () => call.cancel();
      });
      await until(() => seen === 3, "three messages");
      for (let i = 0; i < 3; i++) expect((await client.generate(ask(OTHER, TEN))).ids).toHaveLength(10);
      expect(seen).toBe(3);
      expect(engine.stats()).toMatchObject({ open: 1, engine: { running: 1 } });
      cancel();
      await stalled;
      await until(() => engine.stats().open === 0, "it is gone");
      expect(engine.stats()).toMatchObject({ abortedByCancel: 1, engine: { running: 0, blocksInUse: 0 } });
    }));

  test("a stalled engine that is full lets the next one in when its place is free", () =>
    withScript(
      "- contains: hello\n  fault: { kind: stall, after_tokens: 1 }",
      async (client, engine) => {
        let cancel = () => {};
        const stalled = client.generate(ask(HELLO, TEN), (_count, call) => {
          cancel = () => call.cancel();
        });
        await until(() => engine.stats().tokensSent === 1, "it has begun");
        const next = client.generate(ask(OTHER, TEN));
        await until(() => engine.stats().engine.waiting === 1, "the other waits");
        cancel();
        expect((await next).ids).toHaveLength(10);
        await stalled;
      },
      { maxRunning: 1 },
    ));

  for (const speed of ["1", "instant"])
    test(`a frozen engine answers nothing, pings included, and then goes on where it was (speed ${speed})`, () =>
      withEngine({ speed, decodeBaseMs: 5 }, async (client, engine) => {
        const session = connectHttp2(`http://127.0.0.1:${engine.port}`);
        const ping = () => new Promise<void>((resolve) => session.ping(() => resolve()));
        await ping();
        engine.setFault({ fault: { kind: "freeze", after_tokens: 4, ms: 60_000 }, times: 1 });
        let seen = 0;
        const running = client.generate(ask(OTHER, TEN), (count) => {
          seen = count;
        });
        await until(() => seen >= 4, "four messages");
        const late = connect(engine.port);
        let answers = 0;
        const answered = [ping(), healthy(client), healthy(late), late.generate(ask(HELLO, TEN))].map((each) =>
          each.then((value) => {
            answers++;
            return value;
          }),
        );
        await Bun.sleep(120);
        expect([answers, seen]).toEqual([0, 4]);
        const [status] = await control(engine, "POST", "/freeze?ms=0");
        expect(status).toBe(200);
        expect(await Promise.all(answered)).toMatchObject([undefined, true, true, { status: 0, ids: { length: 10 } }]);
        expect(await running).toMatchObject({ status: 0, ids: { length: 10 } });
        late.close();
        session.close();
      }));

  test("it thaws by itself; calls and connections that ended meanwhile are gone", () =>
    withEngine({ speed: "1", decodeBaseMs: 5 }, async (client, engine) => {
      let cancel: (() => void) | undefined;
      const left = client.generate(ask(OTHER, { max_tokens: 1000, ignore_eos: true }), (_count, call) => {
        cancel = () => call.cancel();
      });
      const socket = createConnection(engine.port, "127.0.0.1");
      await until(() => cancel !== undefined && engine.stats().connections === 2, "both are there");
      await control(engine, "POST", "/freeze?ms=100");
      cancel!();
      socket.destroy();
      expect(await healthy(client)).toBe(true);
      await until(() => engine.stats().open === 0 && engine.stats().connections === 1, "both are gone");
      expect(engine.stats()).toMatchObject({ abortedByCancel: 1, engine: { running: 0 } });
      await left;
    }));
});

describe("a restart", () => {
  test("kills: no goodbye, even out of a freeze; until it is back nobody is there", () =>
    withEngine({ speed: "1", decodeBaseMs: 5 }, async (client, engine) => {
      const session = connectHttp2(`http://127.0.0.1:${engine.port}`);
      session.on("error", () => {});
      let goodbyes = 0;
      session.on("goaway", () => goodbyes++);
      const closed = new Promise((resolve) => session.on("close", resolve));
      await new Promise<void>((resolve) => session.ping(() => resolve()));
      let seen = 0;
      const running = client.generate(ask(OTHER, TEN), (count) => {
        seen = count;
      });
      await until(() => seen > 0, "it has begun");
      engine.freeze(Number.POSITIVE_INFINITY);
      const before = engine.stats().tokensSent;
      const again = engine.restart({ downMs: 60 });
      await closed;
      expect(goodbyes).toBe(0);
      expect((await running).status).toBe(grpc.status.UNAVAILABLE);
      const refused = createConnection(engine.port, "127.0.0.1");
      expect(await new Promise((resolve) => refused.on("error", ({ message }) => resolve(message)))).toContain(
        "ECONNREFUSED",
      );
      await again;
      expect(engine.stats()).toMatchObject({ tokensSent: before, open: 0 });
      expect((await client.generate(ask(OTHER, TEN))).ids).toHaveLength(10);
    }));

  test("breaks connections, forgets the cache, and may change the block size", () =>
    withEngine({ speed: "1" }, async (client, engine) => {
      const blockSize = async () =>
        (
          await client.unary(
            "GetServerInfo",
            "vllm.grpc.engine.GetServerInfoRequest",
            "vllm.grpc.engine.GetServerInfoResponse",
          )
        )["block_size"];
      expect(await blockSize()).toBe(16);
      let begun = false;
      const running = client.generate(ask(OTHER, { max_tokens: 1000, ignore_eos: true }), () => {
        begun = true;
      });
      await until(() => begun, "it has begun");
      const [, reply] = await control(engine, "POST", "/restart", { block_size: 64, down_ms: 20 });
      expect(reply).toEqual({ port: engine.port });
      expect((await running).status).toBe(grpc.status.UNAVAILABLE);
      const again = connect(engine.port);
      const info = await again.unary(
        "GetServerInfo",
        "vllm.grpc.engine.GetServerInfoRequest",
        "vllm.grpc.engine.GetServerInfoResponse",
      );
      expect(info["block_size"]).toBe(64);
      expect((await again.generate(ask(OTHER, TEN))).ids).toHaveLength(10);
      again.close();
      expect(engine.stats()).toMatchObject({ open: 0, uptimeSeconds: expect.any(Number), received: 2 });
      expect(engine.stats().uptimeSeconds).toBeLessThan(5);
    }));
});
