/** What is asked of engines through the gateway: metrics, models, servers, and whether they generate. */
import { afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";
import { createBoards, memoryOf } from "../../../src/fleet/boards.ts";
import { startFleetControl } from "../../../src/fleet/control.ts";
import { startServing } from "../../../src/server/serving.ts";
import { simulatorOptions } from "../../../src/simulator/options.ts";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { testCompute, testControl } from "../../support/control.ts";
import { testKept } from "../../support/kept.ts";
import { openAiServer } from "../../support/openai-server.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "collie-pages-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
beforeAll(async () => {
  for (const [name, bytes] of await demoModelFiles()) await Bun.write(join(folder, name), bytes);
});

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function engine(...args: string[]): Promise<Simulator> {
  const all = ["--port", "0", "--speed", "instant", ...args];
  const simulator = await startSimulator(resolveOptions(simulatorOptions, { args: all, env: {} }).values, {
    tokenizerCacheDir: folder,
  });
  closing.push(() => simulator.stop());
  return simulator;
}

/** A gateway that asks these workers, all of them ready. Gives what it answers to a GET: status and text. */
async function gateway(urls: readonly string[], args: readonly string[] = []) {
  const given = ["--host", "127.0.0.1", "--log-level", "error", "--warmup=off", "--model-path", folder];
  const all = [...given, ...(urls.length > 0 ? ["--worker-urls", ...urls] : []), ...args];
  const { values: config } = resolveOptions(serveOptions, { args: all, env: {} });
  const boards = createBoards(config, 1);
  const log = createLogger({ level: "error", json: false });
  let apply: (snapshot: never) => void = () => {};
  const control = startFleetControl(
    config,
    boards.fleet,
    log,
    { apply: async (snapshot) => apply(snapshot as never), lost: () => {} },
    { cacheDir: folder, compute: testCompute },
  );
  closing.push(() => control.close());
  const serving = startServing(
    { config, boards: memoryOf(boards), thread: 0, port: 0, threads: 1 },
    { ...testControl, admin: control.admin },
    testKept(),
  );
  apply = (snapshot) => serving.apply(snapshot);
  closing.push(() => serving.stop());
  const until = Date.now() + 20_000;
  const isReady = async () => (await control.admin.listWorkers()).every(({ status }) => status === "ready");
  while (!(await isReady()) && Date.now() < until) await Bun.sleep(20);
  expect(await isReady()).toBe(true);
  return async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://127.0.0.1:${serving.port}${path}`, { headers });
    return { status: response.status, type: response.headers.get("content-type"), text: await response.text() };
  };
}

test("metrics of HTTP workers are joined, and those of gRPC workers made from their loads", async () => {
  const [one, two] = [await engine("--dialect", "openai"), await engine("--dialect", "openai")];
  const sglang = await engine("--dialect", "sglang");
  const mute = openAiServer(() => new Response("no", { status: 500 }));
  closing.push(() => mute.stop());
  const [first, second, third] = [
    `http://127.0.0.1:${one.port}`,
    `http://127.0.0.1:${two.port}`,
    `grpc://127.0.0.1:${sglang.port}`,
  ];
  const get = await gateway([first, second, third, mute.url]);
  const { status, type, text } = await get("/engine_metrics");
  expect([status, type]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
  const running = text.split("\n").filter((line) => line.includes("vllm:num_requests_running"));
  expect(running).toEqual([
    "# TYPE vllm:num_requests_running gauge",
    `vllm:num_requests_running{worker_addr="${first}",engine="0",model_name="collie-demo"} 0`,
    `vllm:num_requests_running{worker_addr="${second}",engine="0",model_name="collie-demo"} 0`,
  ]);
  expect(text).toContain(`smg_engine_running_requests{worker_addr="${third}",model="collie-demo",dp_rank="0"} 0\n`);
  expect(text).not.toContain(mute.url);
});

test.each(["vllm", "sglang", "trtllm", "tokenspeed", "mlx"])(
  "model and server of a gRPC worker, %s",
  async (dialect) => {
    const { port } = await engine("--dialect", dialect, "--context-length", "3000");
    const get = await gateway([`grpc://127.0.0.1:${port}`]);
    const model = await get("/get_model_info");
    expect([model.status, JSON.parse(model.text)]).toMatchObject([
      200,
      { model_path: expect.any(String), served_model_name: "collie-demo", context_length: 3000 },
    ]);
    const server = await get("/get_server_info?model=collie-demo");
    expect([server.status, JSON.parse(server.text)]).toMatchObject([
      200,
      { runtime_type: dialect, connection_mode: "grpc", worker_type: "regular" },
    ]);
  },
);

test("an HTTP worker is asked itself, and what is secret is not passed on", async () => {
  const info = {
    model_path: "/models/m",
    is_generation: true,
    api_key: "k",
    states: [{ admin_api_key: "k", tp_size: 2 }],
  };
  const server = openAiServer(({ path }) =>
    path === "/model_info" || path === "/get_server_info" ? Response.json(info) : new Response("", { status: 404 }),
  );
  closing.push(() => server.stop());
  const get = await gateway([server.url]);
  const shown = { model_path: "/models/m", is_generation: true, states: [{ tp_size: 2 }] };
  expect(JSON.parse((await get("/get_model_info")).text)).toEqual(shown);
  expect(JSON.parse((await get("/get_server_info")).text)).toEqual(shown);
});

test("an HTTP worker without such pages is told of as it is known", async () => {
  const server = openAiServer(() => new Response("", { status: 404 }));
  closing.push(() => server.stop());
  const get = await gateway([server.url]);
  expect(JSON.parse((await get("/get_server_info")).text)).toMatchObject({
    served_model_name: "m",
    context_length: 4096,
    connection_mode: "http",
  });
});

test.each(["vllm", "openai"])("a worker generates a token: %s", async (dialect) => {
  const simulator = await engine("--dialect", dialect);
  const get = await gateway([`${dialect === "vllm" ? "grpc" : "http"}://127.0.0.1:${simulator.port}`]);
  expect(await get("/health_generate")).toMatchObject({ status: 200, text: "" });
  expect(simulator.stats()).toMatchObject({ finished: 1, open: 0, tokensSent: 1 });
  expect((await get("/health_generate?model=collie-demo")).status).toBe(200);
  expect((await get("/health_generate?model=unknown")).status).toBe(404);
  simulator.setAlive(false);
  expect((await get("/health_generate")).status).toBeGreaterThanOrEqual(500);
});

test("without workers, and without the key", async () => {
  const get = await gateway([], ["--api-key", "key"]);
  const paths = ["/engine_metrics", "/get_model_info", "/get_server_info", "/health_generate"];
  for (const path of paths) expect((await get(path)).status).toBe(401);
  const statuses = [];
  for (const path of paths) statuses.push((await get(path, { authorization: "Bearer key" })).status);
  expect(statuses).toEqual([200, 503, 503, 503]);
});
