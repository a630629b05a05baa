/** Four serving threads over two simulated engines: what the boards say is what runs, also when a thread is killed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { resolveOptions } from "../../src/config/resolve.ts";
import { serveOptions } from "../../src/config/serve-options.ts";
import { type Boards, createBoards } from "../../src/fleet/boards.ts";
import { type FleetControl, startFleetControl } from "../../src/fleet/control.ts";
import { simulatorOptions } from "../../src/simulator/options.ts";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { type ServingThreads, startServingThreads } from "../../src/threads/supervisor.ts";
import { testCompute, testControl } from "../support/control.ts";
import { doorsFolder } from "../support/doors.ts";
import { keptNowhere } from "../support/kept.ts";

const THREADS = 4;
const CAP = 16;
const CLIENTS = 40;

let engines: Simulator[];
let serving: ServingThreads;
let fleet: FleetControl;
let boards: Boards;
let url: string;

beforeAll(async () => {
  mkdirSync(doorsFolder, { recursive: true });
  const options = resolveOptions(simulatorOptions, { args: ["--port", "0", "--output", "echo"], env: {} }).values;
  engines = await Promise.all([startSimulator(options), startSimulator(options)]);
  const args = ["--host", "127.0.0.1", "--port", "0", "--log-level", "error"];
  args.push("--max-concurrent-requests", String(CAP), "--queue-size", "60", "--warmup=off");
  for (const { port } of engines) args.push("--worker-urls", `grpc://127.0.0.1:${port}`);
  const config = resolveOptions(serveOptions, { args, env: {} }).values;
  const log = createLogger({ level: "error", json: false, write: () => {} });
  boards = createBoards(config, THREADS);
  const mortal = new URL("../support/mortal-thread.ts", import.meta.url);
  serving = await startServingThreads(config, THREADS, boards, log, testControl, keptNowhere, mortal);
  url = `http://127.0.0.1:${serving.port}`;
  fleet = startFleetControl(config, boards.fleet, log, serving, { cacheDir: undefined, compute: testCompute });
  await until("both engines are there", async () => {
    const response = await fetch(`${url}/readiness`);
    const { healthy_workers } = (await response.json()) as { healthy_workers: number };
    return healthy_workers === 2;
  });
}, 60_000);
afterAll(async () => {
  await serving?.shutdown(1000);
  fleet?.close();
  await Promise.all(engines.map((engine) => engine.stop()));
  rmSync(doorsFolder, { recursive: true, force: true });
}, 20_000);

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const began = Date.now(); !(await condition()); await Bun.sleep(5))
    if (Date.now() - began > 15_000) throw new Error(`not in time: ${what}`);
}

/** Requests at the engines. */
const open = () => engines.reduce((sum, engine) => sum + engine.stats().open, 0);
const counts = () => [boards.fleet.bookings(), boards.limits.runningCount(), boards.limits.waitingCount()];

/** The text of an answer; undefined if it broke off. Each on a connection of its own: the kernel spreads them over the threads. */
async function ask(words: string, tokens: number, signal?: AbortSignal): Promise<string | undefined> {
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", connection: "close" },
      keepalive: false,
      body: JSON.stringify({
        model: "collie-demo",
        messages: [{ role: "user", content: words }],
        max_tokens: tokens,
        stream: true,
      }),
      ...(signal && { signal }),
    });
    const frames = (await response.text()).split("\n\n").filter((frame) => frame.startsWith("data: "));
    if (frames.at(-1) !== "data: [DONE]") return undefined;
    const chunks = frames.slice(0, -1).map((frame) => JSON.parse(frame.slice(6)) as Chunk);
    return chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
  } catch {
    return undefined;
  }
}
interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[];
}

const wordsOf = (client: number) => `client ${client} says ${"one two three ".repeat(1 + (client % 7))}`;

describe("four threads", () => {
  test("run no more than may at once, and give each client its own answer", async () => {
    const alone = await Promise.all([0, 1, 2, 3, 4, 5, 6].map((client) => ask(wordsOf(client), 20)));
    let most = 0;
    let waited = 0;
    let isOver = false;
    const watch = (async () => {
      for (; !isOver; await Bun.sleep(1)) {
        const [, , waiting] = counts() as [number, number, number];
        most = Math.max(most, open());
        waited = Math.max(waited, waiting);
      }
    })();
    const answers = await Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        const texts: (string | undefined)[] = [];
        for (let i = 0; i < 5; i++) texts.push(await ask(wordsOf(client % 7), 20));
        return texts;
      }),
    );
    isOver = true;
    await watch;
    for (const [client, texts] of answers.entries()) expect(texts).toEqual(Array(5).fill(alone[client % 7]));
    expect(alone.every((text) => text !== undefined && text !== "")).toBe(true);
    expect(most).toBeLessThanOrEqual(CAP);
    expect(most).toBeGreaterThan(CAP / 2);
    expect(waited).toBeGreaterThan(0);
    await until("all is given back", () => counts().every((count) => count === 0) && open() === 0);
  }, 60_000);

  test("clients that leave, waiting or served, leave nothing behind", async () => {
    const clients = Array.from({ length: CLIENTS }, () => new AbortController());
    const answers = clients.map(({ signal }, client) => ask(wordsOf(client), 500, signal));
    await until("the engines are busy", () => open() === CAP && counts()[2] === CLIENTS - CAP);
    expect(counts()).toEqual([CAP, CAP, CLIENTS - CAP]);
    for (const [i, client] of clients.entries()) if (i % 2 === 0) client.abort();
    await until("others take their places", () => open() === CAP && counts()[2] === CLIENTS / 2 - CAP);
    for (const client of clients) client.abort();
    await Promise.all(answers);
    await until("all is given back", () => counts().every((count) => count === 0) && open() === 0);
  }, 60_000);

  test("a thread that is killed takes its own requests with it, and no others", async () => {
    const answers = Array.from({ length: CLIENTS }, (_, client) => ask(wordsOf(client), 150));
    await until("the engines are busy", () => open() === CAP && counts()[2] === CLIENTS - CAP);
    const [victim] = readdirSync(doorsFolder);
    await Bun.connect({ hostname: "127.0.0.1", port: Number(victim), socket: { data() {} } }).catch(() => undefined);
    const whole = (await Promise.all(answers)).filter((text) => text !== undefined).length;
    expect(whole).toBeGreaterThan(0);
    expect(whole).toBeLessThan(CLIENTS);
    await until("all is given back", () => counts().every((count) => count === 0) && open() === 0);

    await until("the thread is there again", () => readdirSync(doorsFolder).length === THREADS + 1);
    const again = await Promise.all(Array.from({ length: CLIENTS }, (_, client) => ask(wordsOf(client), 20)));
    expect(again.every((text) => text !== undefined)).toBe(true);
    await until("all is given back", () => counts().every((count) => count === 0) && open() === 0);
  }, 60_000);
});
