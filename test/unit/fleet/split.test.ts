import { beforeEach, describe, expect, test } from "bun:test";
import { NoWorkersError, TargetWorkerError } from "../../../src/errors.ts";
import type { WorkerEntry } from "../../../src/fleet/snapshot.ts";
import { FleetView } from "../../../src/fleet/view.ts";
import { FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { ScriptedEngine } from "../generation/scripted-engine.ts";
import { modelEntry } from "../server/gateway.ts";

const MODEL = modelEntry({ id: "m", aliases: [] });

let board: FleetBoard;
let view: FleetView;
let engines: WorkerEntry[];

beforeEach(() => {
  board = FleetBoard.create(1);
  engines = [];
  view = new FleetView(board, 0, (worker) => {
    engines.push(worker);
    return new ScriptedEngine();
  });
});

function worker(id: string, role: WorkerEntry["role"], more: Partial<WorkerEntry> = {}): WorkerEntry {
  const slot = board.claim();
  board.setState(slot, WorkerState.ready);
  return { id, slot, url: `grpc://${id}`, dialect: "scripted", model: "m", role, ...more };
}

const serve = (...workers: WorkerEntry[]) =>
  view.apply({ workers, expected: workers.length, models: [MODEL], tokenizers: [] });
const model = () => view.model("m");

describe("a model whose work is split", () => {
  test("has workers of both parts; those that do the whole take over while a part has none that is ready", () => {
    const [prefill, decode, whole] = [worker("p", "prefill"), worker("d", "decode"), worker("w", "regular")];
    const isSplit = (...workers: WorkerEntry[]) => {
      serve(...workers);
      return view.isSplit(model());
    };
    expect([isSplit(prefill), isSplit(decode), isSplit(whole), isSplit(prefill, whole)]).toEqual([
      false,
      false,
      false,
      false,
    ]);
    expect([isSplit(prefill, decode), isSplit(prefill, decode, whole)]).toEqual([true, true]);
    board.setState(prefill.slot, WorkerState.unhealthy);
    expect([isSplit(prefill, decode), isSplit(prefill, decode, whole)]).toEqual([true, false]);
    expect(view.lease(model()).worker.id).toBe("w");
  });

  test("says what is missing for a request that cannot be split", () => {
    serve(worker("p", "prefill"), worker("d", "decode"));
    expect(() => view.lease(model())).toThrow(/prefill or decode only.* one without a role/);
    serve(worker("p", "prefill"));
    expect(() => view.lease(model())).toThrow(/none that decodes/);
  });

  test("has a part for the worker that a client names, or is not for it", () => {
    serve(worker("p", "prefill"), worker("q", "prefill"), worker("d", "decode"), worker("e", "decode"));
    const to = (target: string) => {
      const pair = view.leasePair(model(), { route: { tokens: 1, target } });
      for (const place of [pair.prefill, pair.decode]) place.done("ok");
      return [pair.prefill.worker.id, pair.decode.worker.id];
    };
    expect([to("q")[0], to("p")[0], to("grpc://e")[1], to("d")[1], to("1")]).toEqual(["q", "p", "e", "d", ["q", "e"]]);
    expect(() => to("nobody")).toThrow(TargetWorkerError);
    expect(() => view.explain("m", { route: { tokens: 1, target: "nobody" } })).toThrow(TargetWorkerError);
    expect(view.explain("m", { route: { tokens: 1, target: "e" } }).decode?.chosen).toBe("e");
    expect(board.bookings()).toBe(0);
  });

  test("gives its requests two places, whose bookings end by themselves", () => {
    const [prefill, decode] = [worker("p", "prefill"), worker("d", "decode")];
    serve(prefill, decode, worker("w", "regular"));
    const pair = view.leasePair(model(), { tokens: 50 });
    expect([pair.prefill.worker, pair.decode.worker]).toEqual([prefill, decode]);
    const counts = () => [prefill, decode].map(({ slot }) => [board.running(slot), board.queuedTokens(slot)]);
    expect(counts()).toEqual([
      [1, 50],
      [1, 0],
    ]);
    pair.prefill.done("ok");
    expect(counts()).toEqual([
      [0, 0],
      [1, 0],
    ]);
    pair.decode.done("ok");
    expect(board.bookings()).toBe(0);
  });

  test("books nothing where one part has no worker left", () => {
    const [prefill, decode, other] = [worker("p", "prefill"), worker("d", "decode"), worker("d2", "decode")];
    serve(prefill, decode, other);
    const tried = new Set([decode.slot]);
    expect(view.leasePair(model(), { tried }).decode.worker).toBe(other);
    expect(() => view.leasePair(model(), { tried: new Set([decode.slot, other.slot]) })).toThrow(NoWorkersError);
    expect(() => view.leasePair(model(), { tried: new Set([prefill.slot]) })).toThrow(NoWorkersError);
    expect([board.running(prefill.slot), board.running(decode.slot)]).toEqual([1, 0]);
    expect(board.running(other.slot)).toBe(1);
  });
});

describe("workers that do a part of the work, and have nobody to share it with", () => {
  const why = () => {
    try {
      return view.lease(model()).worker.id;
    } catch (error) {
      return [error instanceof NoWorkersError, (error as Error).message];
    }
  };

  test.each([
    ["it has workers that prefill, and none that decodes", [["prefill", "vllm"]]],
    ["it has workers that decode, and none that prefills", [["decode", "vllm"]]],
    [
      "those that prefill (sglang) and those that decode (vllm) are different engines",
      [
        ["prefill", "sglang"],
        ["decode", "vllm"],
      ],
    ],
  ] as const)("%s", (message, parts) => {
    const workers = parts.map(([role, dialect]) => worker(role, role, { dialect }));
    serve(...workers);
    expect(view.isSplit(model())).toBe(false);
    expect(why()).toEqual([true, `No worker is available for the model 'm': ${message}`]);
    serve(...workers, worker("w", "regular"));
    expect(why()).toBe("w");
  });

  test("pairs are of one kind of engine, whatever else there is", () => {
    serve(
      worker("p", "prefill", { dialect: "sglang" }),
      worker("p2", "prefill", { dialect: "tokenspeed" }),
      worker("d", "decode", { dialect: "vllm" }),
      worker("d2", "decode", { dialect: "sglang" }),
      worker("p3", "prefill", { dialect: "vllm" }),
    );
    const seen = new Set<string>();
    for (let i = 0; i < 20; i++) {
      const { prefill, decode } = view.leasePair(model());
      seen.add(`${prefill.worker.id} ${decode.worker.id}`);
    }
    expect(seen).toEqual(new Set(["p d2", "p3 d"]));
  });
});

describe("ranks of a worker", () => {
  test("are chosen by themselves, over one connection, and are one worker to who counts", () => {
    const first = worker("w", "regular", { rank: 0 });
    const second = worker("w@1", "regular", { rank: 1, home: first.slot, url: first.url });
    serve({ ...first, home: first.slot }, second);
    const leases = [view.lease(model()), view.lease(model())];
    expect(leases.map(({ worker }) => worker.rank).toSorted()).toEqual([0, 1]);
    expect(leases[0]!.engine).toBe(leases[1]!.engine);
    expect([engines.length, view.readyWorkers()]).toEqual([1, 1]);
    const lost: number[] = [];
    for (const { slot } of [first, second]) view.lost.watch(slot, () => lost.push(slot));
    view.workerLost(first.slot);
    expect(lost).toEqual([first.slot, second.slot]);
  });
});
