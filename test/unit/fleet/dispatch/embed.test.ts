import { describe, expect, test } from "bun:test";
import { EngineError } from "../../../../src/engines/engine.ts";
import { NoWorkersError } from "../../../../src/errors.ts";
import { REPLY, world } from "./world.ts";

const REQUEST = { requestId: "r", tokenIds: Uint32Array.of(1) };
const NEVER = new AbortController().signal;
const UNAVAILABLE = new EngineError("unavailable", "gone");
const settled = () => Bun.sleep(1);

describe("requests for vectors", () => {
  test("count as load while they run, and go to the worker with the least", async () => {
    const { vectors: asked, dispatch: engine, running } = world(2);
    const replies = [engine.embed(REQUEST, NEVER), engine.embed(REQUEST, NEVER)];
    expect(new Set(asked.map(({ worker }) => worker)).size).toBe(2);
    expect(running()).toEqual([1, 1]);
    for (const { resolve } of asked) resolve();
    expect(await Promise.all(replies)).toEqual([REPLY, REPLY]);
    expect(running()).toEqual([0, 0]);
  });

  test("go on to another worker when one cannot be reached, which is avoided then", async () => {
    const { vectors: asked, dispatch: engine, running, board, workers, clock } = world(2);
    const reply = engine.embed(REQUEST, NEVER);
    asked[0]!.reject(UNAVAILABLE);
    await settled();
    expect(asked.map(({ id }) => id)).toEqual(["r", "r-2"]);
    expect(asked[0]!.worker).not.toBe(asked[1]!.worker);
    expect(running().reduce((a, b) => a + b)).toBe(1);
    expect(running()[asked[1]!.worker]).toBe(1);
    expect(board.isAvoided(workers[asked[0]!.worker]!.slot, clock.now())).toBe(true);
    asked[1]!.resolve();
    expect(await reply).toBe(REPLY);
    expect(running()).toEqual([0, 0]);
  });

  test("fail when every worker was tried once", async () => {
    const { vectors: asked, dispatch: engine, running } = world(2);
    const reply = engine.embed(REQUEST, NEVER).catch((error: unknown) => error);
    asked[0]!.reject(UNAVAILABLE);
    await settled();
    asked[1]!.reject(UNAVAILABLE);
    expect(await reply).toBe(UNAVAILABLE);
    expect([asked.length, running()]).toEqual([2, [0, 0]]);
  });

  test("failures of the request itself, and those of a client that left, are told as they are", async () => {
    for (const kind of ["invalid", "not_found", "cancelled", "unimplemented"] as const) {
      const { vectors: asked, dispatch: engine, running } = world(2);
      const reply = engine.embed(REQUEST, NEVER).catch((error: unknown) => error);
      const error = new EngineError(kind, "no");
      asked[0]!.reject(error);
      expect(await reply).toBe(error);
      expect([asked.length, running()]).toEqual([1, [0, 0]]);
    }
    const { vectors: asked, dispatch: engine } = world(2);
    const stop = new AbortController();
    const reply = engine.embed(REQUEST, stop.signal).catch((error: unknown) => error);
    stop.abort();
    asked[0]!.reject(UNAVAILABLE);
    expect(await reply).toBe(UNAVAILABLE);
    expect(asked).toHaveLength(1);
  });

  test("without a worker there is nobody to ask", async () => {
    const { dispatch: engine } = world(0);
    expect(await engine.embed(REQUEST, NEVER).catch((error: unknown) => error)).toBeInstanceOf(NoWorkersError);
  });

  test("that fail at one worker are asked of another, after a pause where it failed inside", async () => {
    const { vectors: asked, dispatch: engine, running, clock } = world(3);
    const reply = engine.embed(REQUEST, NEVER);
    asked[0]!.reject(new EngineError("overloaded", "full"));
    await settled();
    expect(asked).toHaveLength(2);
    asked[1]!.reject(new EngineError("failed", "boom"));
    await clock.pass(70);
    expect(asked).toHaveLength(2);
    await clock.pass(10);
    asked[2]!.resolve();
    expect(await reply).toBe(REPLY);
    expect(running()).toEqual([0, 0, 0]);
  });

  test("leave a worker that is lost", async () => {
    const { vectors: asked, dispatch: engine, fleet, workers } = world(2);
    const reply = engine.embed(REQUEST, NEVER);
    fleet.lost.lost(workers[asked[0]!.worker]!.slot);
    expect(asked[0]!.signal.aborted).toBe(true);
    asked[0]!.reject(new EngineError("cancelled", "cancelled"));
    await settled();
    asked[1]!.resolve();
    expect(await reply).toBe(REPLY);
  });
});
