import { describe, expect, test } from "bun:test";
import { EngineError } from "../../../../src/engines/engine.ts";
import { encode } from "../../generation/demo-tokenizer.ts";
import { world } from "./world.ts";

const limits = { hedgeAfterMs: 200 };

describe("a second worker beside a slow one", () => {
  test("is asked after the pause, and the first to begin has the request", async () => {
    for (const winner of [0, 1]) {
      const { generate, asked, clock, running, told, workerOf } = world(3, { limits });
      const { seen } = generate();
      await clock.pass(199);
      expect(asked).toHaveLength(1);
      await clock.pass(1);
      expect(new Set(asked.map(workerOf)).size).toBe(2);
      expect(asked.map(({ request }) => request.requestId)).toEqual(["r", "r-2"]);
      asked[winner]!.chunk(encode("a"));
      expect(asked.map(({ cancelled }) => cancelled)).toEqual(winner === 0 ? [0, 1] : [1, 0]);
      expect(running().reduce((a, b) => a + b)).toBe(1);
      asked[1 - winner]!.chunk(encode("b"));
      asked[winner]!.finish({ completionTokens: 1 }).end();
      expect(seen).toEqual({ chunks: 1, finishes: 1, ends: [undefined] });
      expect(told).toEqual([winner === 0 ? "hedge lost" : "hedge won"]);
      expect(running()).toEqual([0, 0, 0]);
    }
  });

  test("is not asked when the first one has begun", async () => {
    const { generate, asked, clock } = world(2, { limits });
    generate();
    asked[0]!.chunk(encode("a"));
    await clock.pass(1000);
    expect(asked).toHaveLength(1);
  });

  test("is not asked when all others have something to do, or the budget is used up", async () => {
    const busy = world(2, { limits });
    busy.generate();
    busy.generate();
    await busy.clock.pass(1000);
    expect(busy.asked).toHaveLength(2);
    expect(busy.running()).toEqual([1, 1]);
    const poor = world(2, { limits, budget: { deposit() {}, retryToken: () => false } });
    poor.generate();
    await poor.clock.pass(1000);
    expect([poor.asked.length, poor.running().toSorted()]).toEqual([1, [0, 1]]);
  });

  test("goes on alone when the first one fails; when it fails, too, that is told", async () => {
    const { generate, asked, clock } = world(2, { limits });
    const { seen } = generate();
    await clock.pass(200);
    asked[0]!.end(new EngineError("unavailable", "gone"));
    expect([seen.ends, asked.length]).toEqual([[], 2]);
    const last = new EngineError("unavailable", "gone, too");
    asked[1]!.end(last);
    expect(seen.ends).toEqual([last]);
  });

  test("is cancelled with the first one when the client leaves", async () => {
    const { generate, asked, clock, running } = world(2, { limits });
    const { call, seen } = generate();
    await clock.pass(200);
    call.cancel();
    expect(asked.map(({ cancelled }) => cancelled)).toEqual([1, 1]);
    expect(seen.ends.map((error) => error?.kind)).toEqual(["cancelled"]);
    expect(running()).toEqual([0, 0]);
  });
});

test("without the setting nobody is asked twice", async () => {
  const { generate, asked, clock } = world(2);
  generate();
  await clock.pass(600_000);
  expect(asked).toHaveLength(1);
});
