/** Bringing workers up and watching them, against a real gRPC server whose answers the test gives. */

import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";
import { type FleetControl, startFleetControl } from "../../../src/fleet/control.ts";
import type { FleetSnapshot } from "../../../src/fleet/snapshot.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { testCompute } from "../../support/control.ts";
import { until } from "../../support/until.ts";
import { startVllmServer, type VllmServer } from "../../support/vllm-server.ts";

const folder = mkdtempSync(join(tmpdir(), "collie-control-"));
for (const [name, bytes] of await demoModelFiles()) writeFileSync(join(folder, name), bytes);

setDefaultTimeout(30_000); // a tokenizer is built

let control: FleetControl | undefined;
let engine: VllmServer | undefined;
afterEach(() => {
  control?.close();
  engine?.close();
});
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

async function start(args: string[], publish: (snapshot: FleetSnapshot) => Promise<void> = async () => {}) {
  const state: { healthy: boolean; checks: number; constraintsStart?: string } = { healthy: true, checks: 0 };
  engine = await startVllmServer({
    HealthCheck(call) {
      state.checks++;
      call.send({ healthy: state.healthy, message: "told by the engine" });
      call.end();
    },
    GetServerInfo(call) {
      if (state.constraintsStart === undefined) return call.end(12, "not offered");
      call.send({ constrained_decoding_start: state.constraintsStart });
      call.end();
    },
    GetModelInfo(call) {
      call.send({ served_model_name: "served", max_context_length: 512, is_generation: true });
      call.end();
    },
  });
  const url = `grpc://127.0.0.1:${engine.port}`;
  const { values: config } = resolveOptions(serveOptions, {
    args: ["--worker-urls", url, "--model-path", folder, ...args],
    env: {},
  });
  const board = FleetBoard.create(1);
  const lines: string[] = [];
  const lost: number[] = [];
  let known: FleetSnapshot | undefined;
  const threads = {
    apply(snapshot: FleetSnapshot) {
      known = snapshot;
      return publish(snapshot);
    },
    lost: (slot: number) => void lost.push(slot),
  };
  const log = createLogger({ level: "debug", json: false, write: (line) => lines.push(line) });
  return {
    state,
    board,
    url,
    lines,
    lost,
    workers: () => known?.workers ?? [],
    slot: () => known?.workers[0]?.slot ?? -1,
    start: () => {
      control = startFleetControl(config, board, log, threads, { cacheDir: folder, compute: testCompute });
      return control;
    },
  };
}

test("a worker counts only when every thread knows it", async () => {
  const known = Promise.withResolvers<void>();
  const published: FleetSnapshot[] = [];
  const world = await start([], (snapshot) => {
    published.push(snapshot);
    return known.promise;
  });
  const { ready } = world.start();
  await until(() => published.length === 2, "the new fleet");
  expect(published[0]).toMatchObject({ workers: [], expected: 1, starting: 1, models: [] }); // who is still to come
  expect(world.board.state(world.slot())).toBe(WorkerState.starting);
  known.resolve();
  expect(await ready).toMatchObject({ url: world.url, model: "served" });
  expect(world.workers()).toMatchObject([{ url: world.url, dialect: "vllm", model: "served" }]);
  expect(world.board.state(world.slot())).toBe(WorkerState.ready);
  expect(published[1]?.models.map(({ id, contextLength }) => [id, contextLength])).toEqual([["served", 512]]);
});

test.each<[string | undefined, boolean | undefined]>([
  ["after_reasoning", true],
  ["first_token", false],
  ["", undefined],
  [undefined, undefined],
])("an engine that says of its constraints that they start %p: they wait for reasoning: %p", async (said, waits) => {
  const world = await start([]);
  if (said !== undefined) world.state.constraintsStart = said;
  await world.start().ready;
  expect(world.workers().map(({ waitsForReasoning }) => waitsForReasoning)).toEqual([waits]);
});

test("an unhealthy worker is taken out after the threshold and comes back after its own", async () => {
  const world = await start([
    "--health-check-interval-secs",
    "1",
    "--health-failure-threshold",
    "2",
    "--health-success-threshold",
    "1",
  ]);
  await world.start().ready;
  world.state.healthy = false;
  await until(() => world.board.state(world.slot()) === WorkerState.unhealthy, "taken out");
  expect(world.lines.join("")).toContain("told by the engine");
  world.state.healthy = true;
  await until(() => world.board.state(world.slot()) === WorkerState.ready, "back");
}, 20_000);

test("a worker that is not healthy yet is tried again until it is", async () => {
  const world = await start([]);
  world.state.healthy = false;
  const { ready } = world.start();
  await until(() => world.state.checks > 3, "more tries");
  expect(world.workers()).toEqual([]);
  world.state.healthy = true;
  await ready;
  expect(world.board.state(world.slot())).toBe(WorkerState.ready);
  expect(world.lines.filter((line) => line.includes("not ready yet")).length).toBe(1); // said once, not at each try
});

test("closing ends the tries", async () => {
  const world = await start([]);
  world.state.healthy = false;
  world.start();
  await until(() => world.state.checks > 1, "a try");
  control?.close();
  await Bun.sleep(300); // one that was on its way
  const { checks } = world.state;
  await Bun.sleep(600);
  expect(world.state.checks).toBe(checks);
});
