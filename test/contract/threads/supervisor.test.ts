import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";
import { createBoards } from "../../../src/fleet/boards.ts";
import { type FleetControl, startFleetControl } from "../../../src/fleet/control.ts";
import { simulatorOptions } from "../../../src/simulator/options.ts";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import type { FleetBoard } from "../../../src/threads/fleet-board.ts";
import { type ServingThreads, startServingThreads } from "../../../src/threads/supervisor.ts";
import { testCompute, testControl } from "../../support/control.ts";
import { doorsFolder } from "../../support/doors.ts";
import { keptNowhere } from "../../support/kept.ts";

const THREADS = 3;

describe("serving threads that die", () => {
  const lines: string[] = [];
  const log = createLogger({ level: "info", json: false, write: (line) => lines.push(line) });
  let simulator: Simulator;
  let serving: ServingThreads;
  let fleet: FleetControl;
  let board: FleetBoard;
  let url: string;

  beforeAll(async () => {
    mkdirSync(doorsFolder, { recursive: true });
    const engine = resolveOptions(simulatorOptions, { args: ["--port", "0", "--output", "echo"], env: {} }).values;
    simulator = await startSimulator(engine);
    const config = resolveOptions(serveOptions, {
      args: [
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--worker-urls",
        `grpc://127.0.0.1:${simulator.port}`,
        "--log-level",
        "error",
      ],
      env: {},
    }).values;
    const boards = createBoards(config, THREADS);
    board = boards.fleet;
    serving = await startServingThreads(
      config,
      THREADS,
      boards,
      log,
      testControl,
      keptNowhere,
      new URL("../../support/mortal-thread.ts", import.meta.url),
    );
    fleet = startFleetControl(config, board, log, serving, { cacheDir: undefined, compute: testCompute });
    await fleet.ready;
    url = `http://127.0.0.1:${serving.port}`;
  }, 30_000);
  afterAll(async () => {
    await serving?.shutdown(1000);
    fleet?.close();
    await simulator?.stop();
    rmSync(doorsFolder, { recursive: true, force: true });
  }, 10_000);

  const ask = () =>
    fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "collie-demo",
        messages: [{ role: "user", content: "word ".repeat(20) }],
        max_tokens: 200,
        stream: true,
      }),
    })
      .then((response) => response.text())
      .catch(() => "cut");

  test("the others' streams go on, its bookings are given back, and a new one takes its place", async () => {
    const answers = Array.from({ length: 30 }, ask);
    const started = performance.now();
    while (simulator.stats().open < 30 && performance.now() - started < 5000) await Bun.sleep(5);
    expect(simulator.stats().open).toBe(30);
    expect(board.running(0)).toBe(30);

    const [victim] = readdirSync(doorsFolder);
    await Bun.connect({ hostname: "127.0.0.1", port: Number(victim), socket: { data() {} } }).catch(() => undefined);
    const texts = await Promise.all(answers);
    const whole = texts.filter((text) => text.endsWith("data: [DONE]\n\n")).length;
    const cut = texts.filter((text) => !text.includes("[DONE]")).length;
    expect(whole + cut).toBe(30);
    expect(whole).toBeGreaterThan(0);
    expect(cut).toBeGreaterThan(0);
    expect(lines.join("")).toContain("serving thread ended; starting it again");

    // A new thread, which knows the fleet: there is one more door than before the death.
    const patience = performance.now();
    while (readdirSync(doorsFolder).length <= THREADS && performance.now() - patience < 5000) await Bun.sleep(10);
    expect(readdirSync(doorsFolder).length).toBe(THREADS + 1);
    for (const text of await Promise.all(Array.from({ length: 30 }, ask)))
      expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    // the engine's last word comes behind the last token
    for (let i = 0; i < 200 && board.running(0) > 0; i++) await Bun.sleep(10);
    expect(board.running(0)).toBe(0);
    expect(simulator.stats().open).toBe(0);
  }, 30_000);
});
