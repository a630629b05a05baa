import { describe, expect, test } from "bun:test";
import { EngineError } from "../../../../src/engines/engine.ts";
import { encode } from "../../generation/demo-tokenizer.ts";
import { world } from "./world.ts";

describe("the first token", () => {
  test("that does not come in time is awaited from another worker", async () => {
    const { generate, asked, clock, running } = world(2, { limits: { firstTokenMs: 2000 } });
    const { seen } = generate();
    await clock.pass(1900);
    expect(asked).toHaveLength(1);
    await clock.pass(400);
    expect([asked[0]!.cancelled, asked.length]).toEqual([1, 2]);
    asked[1]!.chunk(encode("a"));
    await clock.pass(60_000);
    asked[1]!.finish({ completionTokens: 1 }).end();
    expect(seen).toEqual({ chunks: 1, finishes: 1, ends: [undefined] });
    expect(running()).toEqual([0, 0]);
  });

  test("that comes from nobody is a timeout, which counts against the workers", async () => {
    const breaker = { failures: 1, rate: 0, successes: 1, timeoutMs: 60_000, windowMs: 60_000 };
    const { generate, clock, board, workers } = world(2, { limits: { firstTokenMs: 1000 }, breaker });
    const { seen } = generate();
    await clock.pass(3000);
    expect(seen.ends.map((error) => error?.kind)).toEqual(["timeout"]);
    expect(workers.map(({ slot }) => board.breaker.state(slot))).toEqual(["open", "open"]);
  });
});

describe("the next token", () => {
  test("that does not come in time ends the stream, and the engine is told", async () => {
    const { generate, asked, clock, running } = world(2, { limits: { interTokenMs: 1000 } });
    const { seen } = generate();
    await clock.pass(60_000); // to the first one it may take as long as it likes
    for (let i = 0; i < 5; i++) {
      asked[0]!.chunk(encode("a"));
      await clock.pass(900);
    }
    expect(seen.ends).toEqual([]);
    await clock.pass(900);
    expect(seen.ends.map((error) => error?.kind)).toEqual(["timeout"]);
    expect([asked[0]!.cancelled, asked.length, running()]).toEqual([1, 1, [0, 0]]);
  });

  test("is not awaited while the client does not read", async () => {
    const { generate, asked, clock } = world(1, { limits: { interTokenMs: 1000 } });
    const { call, seen } = generate();
    asked[0]!.chunk(encode("a"));
    call.pause();
    await clock.pass(10_000);
    call.resume();
    await clock.pass(900);
    expect(seen.ends).toEqual([]);
    await clock.pass(600);
    expect(seen.ends.map((error) => error?.kind)).toEqual(["timeout"]);
  });
});

test("one timer does for all streams, and none without any", async () => {
  const { generate, asked, clock } = world(3, { limits: { firstTokenMs: 5000, interTokenMs: 5000 } });
  expect(clock.waits).toBe(0);
  for (let i = 0; i < 20; i++) generate();
  expect(clock.waits).toBe(1);
  for (const call of asked) call.chunk(encode("a")).finish({ completionTokens: 1 }).end();
  await clock.pass(1000);
  expect(clock.waits).toBe(0);
});

test("without limits nobody waits for a worker that says nothing", () => {
  const { generate, clock } = world(1);
  generate();
  expect(clock.waits).toBe(0);
});

test("a worker whose reader is slow counts as one that moves", async () => {
  const { generate, asked, clock, board, workers } = world(1);
  const { call } = generate();
  asked[0]!.chunk(encode("a"));
  const silent = () => board.silentMs(workers[0]!.slot, clock.now());
  await clock.pass(20_000);
  expect(silent()).toBeGreaterThan(19_000);
  call.pause();
  await clock.pass(20_000);
  expect(silent()).toBeLessThan(1000);
  call.resume();
  asked[0]!.chunk(encode("b"));
  await clock.pass(500);
  expect(silent()).toBeLessThan(1000);
});

describe("vectors", () => {
  const REQUEST = { requestId: "r", tokenIds: Uint32Array.of(1) };

  test("that do not come in time are asked of another worker", async () => {
    const { dispatch, vectors, clock } = world(2, { limits: { firstTokenMs: 1000 } });
    const reply = dispatch.embed(REQUEST, new AbortController().signal);
    await clock.pass(1300);
    expect(vectors[0]!.signal.aborted).toBe(true);
    vectors[0]!.reject(new EngineError("cancelled", "cancelled"));
    await clock.pass(0);
    vectors[1]!.resolve();
    expect((await reply).promptTokens).toBe(1);
  });
});
