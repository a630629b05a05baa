import { describe, expect, test } from "bun:test";
import { EngineError } from "../../../src/engines/engine.ts";
import { NoWorkersError } from "../../../src/errors.ts";
import { dispatcher } from "../../../src/fleet/dispatch.ts";
import { FleetView } from "../../../src/fleet/view.ts";
import { FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { ScriptedEngine } from "../generation/scripted-engine.ts";
import { MODEL, modelEntry } from "../server/gateway.ts";

const REQUEST = { requestId: "r", tokenIds: Uint32Array.of(1) };
const NEVER = new AbortController().signal;
const UNAVAILABLE = new EngineError("unavailable", "gone");
const REPLY = { embedding: Float32Array.of(1), promptTokens: 1 };

/** Workers whose engines settle the asked vectors one after the other. */
function world(count: number) {
  const board = FleetBoard.create(1);
  const asked: { worker: number; id: string; resolve: () => void; reject: (error: unknown) => void }[] = [];
  const engines = Array.from(
    { length: count },
    (_, worker) =>
      new ScriptedEngine(undefined, ({ requestId: id }) => {
        const { promise, resolve, reject } = Promise.withResolvers<typeof REPLY>();
        asked.push({ worker, id, resolve: () => resolve(REPLY), reject });
        return promise;
      }),
  );
  const workers = engines.map((_, i) => {
    const slot = board.claim();
    board.setState(slot, WorkerState.ready);
    return { id: String(i), slot, url: `grpc://engine:${i}`, dialect: "scripted", model: MODEL };
  });
  const fleet = new FleetView(board, 0, ({ id }) => engines[Number(id)]!);
  fleet.apply({ workers, expected: count, models: [modelEntry()], tokenizers: [] });
  const engine = dispatcher(fleet, fleet.model(MODEL));
  const running = () => workers.map(({ slot }) => board.running(slot));
  return { asked, engine, running, board, workers };
}
const settled = () => Bun.sleep(1);

describe("requests for vectors", () => {
  test("count as load while they run, and go to the worker with the least", async () => {
    const { asked, engine, running } = world(2);
    const replies = [engine.embed(REQUEST, NEVER), engine.embed(REQUEST, NEVER)];
    expect(new Set(asked.map(({ worker }) => worker)).size).toBe(2);
    expect(running()).toEqual([1, 1]);
    for (const { resolve } of asked) resolve();
    expect(await Promise.all(replies)).toEqual([REPLY, REPLY]);
    expect(running()).toEqual([0, 0]);
  });

  test("go on to another worker when one cannot be reached, which is avoided then", async () => {
    const { asked, engine, running, board, workers } = world(2);
    const reply = engine.embed(REQUEST, NEVER);
    asked[0]!.reject(UNAVAILABLE);
    await settled();
    expect(asked.map(({ id }) => id)).toEqual(["r", "r-2"]);
    expect(asked[0]!.worker).not.toBe(asked[1]!.worker);
    expect(running().reduce((a, b) => a + b)).toBe(1);
    expect(running()[asked[1]!.worker]).toBe(1);
    expect(board.isAvoided(workers[asked[0]!.worker]!.slot)).toBe(true);
    asked[1]!.resolve();
    expect(await reply).toBe(REPLY);
    expect(running()).toEqual([0, 0]);
  });

  test("fail when every worker was tried once", async () => {
    const { asked, engine, running } = world(2);
    const reply = engine.embed(REQUEST, NEVER).catch((error: unknown) => error);
    asked[0]!.reject(UNAVAILABLE);
    await settled();
    asked[1]!.reject(UNAVAILABLE);
    expect(await reply).toBe(UNAVAILABLE);
    expect([asked.length, running()]).toEqual([2, [0, 0]]);
  });

  test("other failures, and those of a client that left, are told as they are", async () => {
    for (const kind of ["invalid", "failed", "cancelled", "overloaded"] as const) {
      const { asked, engine, running } = world(2);
      const reply = engine.embed(REQUEST, NEVER).catch((error: unknown) => error);
      const error = new EngineError(kind, "no");
      asked[0]!.reject(error);
      expect(await reply).toBe(error);
      expect([asked.length, running()]).toEqual([1, [0, 0]]);
    }
    const { asked, engine } = world(2);
    const stop = new AbortController();
    const reply = engine.embed(REQUEST, stop.signal).catch((error: unknown) => error);
    stop.abort();
    asked[0]!.reject(UNAVAILABLE);
    expect(await reply).toBe(UNAVAILABLE);
    expect(asked).toHaveLength(1);
  });

  test("without a worker there is nobody to ask", async () => {
    const { engine } = world(0);
    expect(await engine.embed(REQUEST, NEVER).catch((error: unknown) => error)).toBeInstanceOf(NoWorkersError);
  });
});
