import { describe, expect, test } from "bun:test";
import { EngineError, type EngineError as EngineErrorType } from "../../../src/engines/engine.ts";
import { dispatcher } from "../../../src/fleet/dispatch.ts";
import { FleetView } from "../../../src/fleet/view.ts";
import { FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { encode } from "../generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../generation/scripted-engine.ts";
import { MODEL, modelEntry } from "../server/gateway.ts";

const UNAVAILABLE = new EngineError("unavailable", "gone");
const REQUEST = { requestId: "r", tokenIds: new Uint32Array([1]), sampling: {}, stream: true };

function world(count: number) {
  const board = FleetBoard.create(1);
  const engines = Array.from({ length: count }, () => new ScriptedEngine());
  const workers = engines.map((_, i) => {
    const slot = board.claim();
    board.setState(slot, WorkerState.ready);
    return { id: String(i), slot, url: `grpc://engine:${i}`, dialect: "scripted", model: MODEL };
  });
  const fleet = new FleetView(board, 0, ({ id }) => engines[Number(id)]!);
  fleet.apply({ workers, expected: count, models: [modelEntry()], tokenizers: [] });
  const seen: { chunks: number; ends: (EngineErrorType | undefined)[] } = { chunks: 0, ends: [] };
  const call = dispatcher(fleet, fleet.model(MODEL)).generate(REQUEST, {
    onChunk: () => seen.chunks++,
    onFinish() {},
    onIdle() {},
    onEnd: (error) => seen.ends.push(error),
  });
  const running = () => workers.reduce((sum, { slot }) => sum + board.running(slot), 0);
  const asked = () => engines.flatMap((engine) => engine.calls);
  return { board, workers, fleet, seen, call, running, asked };
}

describe("a worker that cannot be reached", () => {
  test("costs the client nothing as long as another can, and is avoided afterwards", () => {
    const { asked, seen, running, board, workers, fleet } = world(3);
    expect(running()).toBe(1);
    asked()[0]!.end(UNAVAILABLE);
    expect(asked()).toHaveLength(2);
    expect(new Set(asked().map((call) => call.request.requestId)).size).toBe(2);
    expect(running()).toBe(1);
    asked().at(-1)!.chunk(encode("a")).finish({ completionTokens: 1 }).end();
    expect(seen).toEqual({ chunks: 1, ends: [undefined] });
    expect(running()).toBe(0);
    const avoided = workers.filter(({ slot }) => board.isAvoided(slot));
    expect(avoided).toHaveLength(1);
    for (let i = 0; i < 6; i++) {
      const lease = fleet.lease(fleet.model(MODEL));
      expect(lease.worker.slot).not.toBe(avoided[0]!.slot);
      lease.done("ok");
    }
  });

  test("is an error when there is no other, each worker asked once", () => {
    const { asked, seen, running } = world(2);
    asked()[0]!.end(UNAVAILABLE);
    expect(seen.ends).toEqual([]);
    asked().at(-1)!.end(UNAVAILABLE);
    expect(seen.ends).toEqual([UNAVAILABLE]);
    expect(asked()).toHaveLength(2);
    expect(running()).toBe(0);
  });

  test("is an error once something has come back: a token is never given twice", () => {
    const { asked, seen } = world(2);
    asked()[0]!.chunk(encode("a")).end(UNAVAILABLE);
    expect(seen).toEqual({ chunks: 1, ends: [UNAVAILABLE] });
    expect(asked()).toHaveLength(1);
  });

  test("alone, it is tried again with the next request", () => {
    const { asked, seen, fleet } = world(1);
    asked()[0]!.end(UNAVAILABLE);
    expect(seen.ends).toEqual([UNAVAILABLE]);
    fleet.lease(fleet.model(MODEL)).done("ok");
  });
});

test("other failures are not tried elsewhere", () => {
  const { asked, seen, running } = world(2);
  const refused = new EngineError("invalid", "no");
  asked()[0]!.end(refused);
  expect(seen.ends).toEqual([refused]);
  expect(running()).toBe(0);
});

test("a request that was cancelled goes nowhere else, and gives its place back", () => {
  const { asked, seen, call, running } = world(2);
  call.cancel();
  expect(asked()).toHaveLength(1);
  expect(seen.ends).toHaveLength(1);
  expect(running()).toBe(0);
});

test("a pause holds over to the next worker", () => {
  const { asked, call } = world(2);
  call.pause();
  asked()[0]!.end(UNAVAILABLE);
  expect(asked().at(-1)!.paused).toBe(1);
});
