/** Engines of every dialect and age, as the fleet takes them in, watches them and asks them, over real connections. */
import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";
import { type FleetControl, startFleetControl } from "../../../src/fleet/control.ts";
import type { FleetSnapshot } from "../../../src/fleet/snapshot.ts";
import { simulatorOptions } from "../../../src/simulator/options.ts";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { testCompute } from "../../support/control.ts";

/** Not every engine gives its tokenizer away. */
const folder = mkdtempSync(join(tmpdir(), "collie-register-"));
for (const [name, bytes] of await demoModelFiles()) writeFileSync(join(folder, name), bytes);
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

let simulator: Simulator | undefined;
let control: FleetControl | undefined;
afterEach(async () => {
  control?.close();
  await simulator?.stop();
  simulator = undefined;
});

async function engine(args: readonly string[]): Promise<Simulator> {
  const all = ["--port", "0", "--speed", "instant", ...args];
  simulator = await startSimulator(resolveOptions(simulatorOptions, { args: all, env: {} }).values);
  return simulator;
}

function fleet(url: string, args: readonly string[] = []) {
  const { values: config } = resolveOptions(serveOptions, { args: ["--worker-urls", url, ...args], env: {} });
  const board = FleetBoard.create(1);
  const lines: string[] = [];
  const log = createLogger({ level: "debug", json: false, write: (line) => lines.push(line) });
  const seen: FleetSnapshot[] = [];
  const threads = { apply: async (snapshot: FleetSnapshot) => void seen.push(snapshot), lost: () => {} };
  const started = startFleetControl(config, board, log, threads, { cacheDir: folder, compute: testCompute });
  control = started;
  return { ...started, board, lines, snapshot: () => seen.at(-1)! };
}

async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (const start = Date.now(); !(await condition()); await Bun.sleep(20))
    if (Date.now() - start > 25_000) throw new Error(`not in time: ${what}`);
}

const DIALECTS = ["vllm", "sglang", "trtllm", "tokenspeed", "mlx"];
const AGES = ["0.4.14", "0.4.28"];

describe.each(DIALECTS.flatMap((dialect) => AGES.map((age) => [dialect, age] as const)))("%s %s", (dialect, age) => {
  test("is taken in by its address, found by asking, and stays healthy", async () => {
    const { port } = await engine(["--dialect", dialect, "--protocol", age]);
    const { ready, admin, snapshot, lines } = fleet(`127.0.0.1:${port}`, [
      "--health-check-interval-secs",
      "1",
      "--model-path",
      folder,
    ]);
    expect(await ready).toEqual({ url: `grpc://127.0.0.1:${port}`, model: "collie-demo" });
    const [worker] = snapshot().workers;
    expect(worker).toMatchObject({ dialect, model: "collie-demo", facts: { dialect, role: "regular" } });
    await Bun.sleep(1500); // a check
    expect(snapshot().workers.map(({ slot }) => slot)).toEqual([worker!.slot]); // it is the same engine
    const [shown] = await admin.listWorkers();
    expect([shown?.status, shown?.kind, shown?.dialect]).toEqual(["ready", "grpc", dialect]);
    expect(lines.filter((line) => /WARN|ERROR|health check failed/.test(line))).toEqual([]);
    const [loads] = await admin.loads();
    if (age === "0.4.28" && ["vllm", "sglang", "tokenspeed"].includes(dialect)) expect(loads?.ranks).toHaveLength(1);
    const [flushed] = await admin.flushCache(0);
    expect(flushed?.url).toBe(`grpc://127.0.0.1:${port}`);
    if (dialect === "mlx") expect(flushed?.error).toBeTruthy();
  }, 40_000);
});

// the others are asked for tokens only where that is wanted
test.each([
  ["vllm", []],
  ["trtllm", ["--model-path", folder]],
  ["mlx", []],
])(
  "%s whose engine is dead behind its server is not sent anything",
  async (dialect, args) => {
    const dead = await engine(["--dialect", dialect]);
    const checks = ["--health-check-interval-secs", "1", "--health-failure-threshold", "1"];
    const { ready, admin } = fleet(`grpc://127.0.0.1:${dead.port}`, [...checks, ...args]);
    await ready;
    dead.setAlive(false);
    await until(async () => (await admin.listWorkers())[0]?.status === "not_ready", "not ready");
    dead.setAlive(true);
    await until(async () => (await admin.listWorkers())[0]?.status === "ready", "ready again");
  },
  40_000,
);

describe.each(["vllm", "sglang", "llamacpp", "ollama"])("an HTTP server like %s's", (flavor) => {
  test("is taken in by its address and by its URL, and its requests go on as they came", async () => {
    const { port } = await engine(["--dialect", "openai", "--flavor", flavor]);
    for (const url of [`127.0.0.1:${port}`, `http://localhost:${port}`]) {
      const { ready, admin, snapshot } = fleet(url);
      const { model } = await ready;
      expect(snapshot()).toMatchObject({
        models: [],
        httpModels: [{ id: model }],
        workers: [{ dialect: "openai", model }],
      });
      const [shown] = await admin.listWorkers(model);
      expect([shown?.status, shown?.kind]).toEqual(["ready", "http"]);
      control?.close();
    }
  }, 40_000);
});

test("an HTTP worker with a key is asked with its own, and names its model as it is told to", async () => {
  const { port } = await engine(["--dialect", "openai", "--api-key", "secret"]);
  const url = `http://127.0.0.1:${port}`;
  const { admin, snapshot } = fleet("grpc://127.0.0.1:9");
  const without = await admin.addWorker({ url });
  await until(async () => ((await admin.worker(without.id)).job?.message ?? "") !== "", "a refusal");
  expect((await admin.worker(without.id)).job?.message).toContain("key");
  await admin.replaceWorker(without.id, { url, apiKey: "secret", models: ["mine", "also"] });
  await until(async () => (await admin.worker(without.id)).status === "ready", "ready");
  expect(snapshot().httpModels).toMatchObject([{ id: "mine", aliases: ["also"] }]);
  expect(snapshot().workers).toMatchObject([{ apiKey: "secret", model: "mine" }]);
}, 40_000);

test("of an address that answers to neither it is told why by gRPC and why by HTTP", async () => {
  const { port } = await engine(["--dialect", "openai", "--api-key", "secret"]);
  const { admin } = fleet("grpc://127.0.0.1:9");
  const { id } = await admin.addWorker({ url: `127.0.0.1:${port}` });
  const message = async () => (await admin.worker(id)).job?.message ?? "";
  await until(async () => (await message()) !== "", "a refusal");
  expect(await message()).toMatch(/^by gRPC: .+; by HTTP: .*key/);
}, 40_000);

test("an engine that comes back with another block size is another one, long before the next health check", async () => {
  const { port, statsPort } = await engine([]);
  const { ready, board, admin, snapshot } = fleet(`grpc://127.0.0.1:${port}`, ["--health-check-interval-secs", "3600"]);
  await ready;
  const { slot, facts } = snapshot().workers[0]!;
  const restarted = await fetch(`http://127.0.0.1:${statsPort}/restart`, {
    method: "POST",
    body: JSON.stringify({ block_size: 64 }),
  });
  expect(restarted.ok).toBe(true);
  await until(() => snapshot().workers.some((worker) => worker.slot !== slot), "a new registration");
  await until(async () => (await admin.listWorkers())[0]?.status === "ready", "ready again");
  expect([facts?.blockSize, snapshot().workers.at(-1)?.facts?.blockSize]).toEqual([16, 64]);
  await until(() => board.state(slot) === WorkerState.absent, "the old row is free");
}, 60_000);
