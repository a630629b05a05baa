import { afterEach, describe, expect, test } from "bun:test";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";
import { createBoards } from "../../../src/fleet/boards.ts";
import type { FleetSnapshot } from "../../../src/fleet/snapshot.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { WorkerState } from "../../../src/threads/fleet-board.ts";
import { ListenError, type ServingThreads, startServingThreads } from "../../../src/threads/supervisor.ts";
import { testControl } from "../../support/control.ts";
import { keptNowhere } from "../../support/kept.ts";
import { TestCaches } from "../../support/prefix.ts";
import { until } from "../../support/until.ts";
import { MODEL, modelEntry } from "../server/gateway.ts";

const MORTAL = new URL("./mortal-thread.ts", import.meta.url);

let threads: ServingThreads | undefined;
afterEach(async () => {
  await threads?.shutdown(0);
  threads = undefined;
});

async function start(count: number, port = 0, pingMs?: number) {
  const { values: config } = resolveOptions(serveOptions, {
    args: ["--host", "127.0.0.1", "--port", String(port), "--log-level", "error"],
    env: {},
  });
  const boards = createBoards(config, count);
  const board = boards.fleet;
  const slot = board.claim();
  board.setState(slot, WorkerState.ready);
  const lines: string[] = [];
  const log = createLogger({ level: "debug", json: false, write: (line) => lines.push(line) });
  threads = await startServingThreads(config, count, boards, log, testControl, keptNowhere, MORTAL, pingMs);
  const url = `http://127.0.0.1:${threads.port}`;
  return { threads, url, board, boards, slot, lines };
}

const fleet: FleetSnapshot = {
  expected: 1,
  workers: [{ id: "w", slot: 0, url: "grpc://127.0.0.1:1", dialect: "vllm", model: MODEL }],
  models: [modelEntry()],
  tokenizers: [],
};

/** What each of many new connections gets; the kernel spreads them over the threads. */
const ask = (url: string, path: string) =>
  Promise.all(
    Array.from({ length: 40 }, async () => {
      const response = await fetch(url + path, { keepalive: false, headers: { connection: "close" } });
      return [response.status, await response.text()] as const;
    }),
  );

describe.each([1, 2])("with %d threads", (count) => {
  test("a new fleet is known everywhere once it counts", async () => {
    const { threads, url } = await start(count);
    for (const [, text] of await ask(url, "/v1/models")) expect(text).not.toContain(MODEL);
    await threads.apply(fleet);
    for (const [status, text] of await ask(url, "/v1/models")) {
      expect(status).toBe(200);
      expect(text).toContain(MODEL);
    }
  });

  test("a port that is taken is refused at the start", async () => {
    const taken = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    await expect(start(count, taken.port)).rejects.toBeInstanceOf(ListenError);
    taken.stop(true);
  });

  test("after a shutdown the port is free", async () => {
    const { threads: running, url } = await start(count);
    await running.shutdown(1000);
    threads = undefined;
    await expect(fetch(`${url}/health`)).rejects.toThrow();
  });
});

test("a thread that hangs is ended and started again; a shutdown does not wait for one for ever", async () => {
  const { threads: running, url, lines } = await start(2, 0, 600); // a thread takes its time to load
  const orders = new BroadcastChannel("mortal-thread");
  orders.postMessage({ hang: 1 });
  await until(() => lines.join("").includes("serving thread hangs; ending it thread=1"), "noticed");
  await until(() => lines.join("").includes("serving thread ended; starting it again thread=1"), "ended");
  await Bun.sleep(300);
  for (const [status] of await ask(url, "/health")) expect(status).toBe(200);
  expect(running.isStuck()).toBe(false);
  orders.postMessage({ hang: 0 });
  orders.close();
  const started = performance.now();
  await running.shutdown(100);
  threads = undefined;
  expect(performance.now() - started).toBeLessThan(15_000);
}, 60_000);

test("a thread that dies gives back what it had booked, and comes back with the whole fleet", async () => {
  const { threads, url, board, slot, lines } = await start(2);
  await threads.apply(fleet);
  board.book(slot, 0);
  board.book(slot, 1);
  board.book(slot, 1);
  const orders = new BroadcastChannel("mortal-thread");
  orders.postMessage(1);
  await until(() => board.running(slot) === 1, "its bookings");
  await until(() => lines.some((line) => line.includes("starting it again")), "the restart");
  for (const [status] of await ask(url, "/health")) expect(status).toBe(200); // the other one goes on
  await Bun.sleep(400);
  for (const [, text] of await ask(url, "/v1/models")) expect(text).toContain(MODEL);
  await threads.apply({ ...fleet, models: [modelEntry({ aliases: ["later"] })] });
  for (const [, text] of await ask(url, "/v1/models")) expect(text).toContain("later");
  orders.close();
});

test("a thread that dies while it writes to the prefix index keeps nobody from writing there", async () => {
  const { boards, lines } = await start(2);
  const { prefix } = boards;
  const writer = prefix.writer();
  const member = writer.claim(0, 0);
  const chain = { keys: Int32Array.of(1, 1, 2, 2), count: 2, blockSize: 16 };
  const caches = new TestCaches(writer);
  const isWritten = (block: number) => caches.tell(chain, member, block, block + 1) > block;
  expect(isWritten(0)).toBe(true);
  const orders = new BroadcastChannel("mortal-thread");
  orders.postMessage({ dieWriting: 1 });
  await until(() => lines.some((line) => line.includes("starting it again")), "its death");
  expect(isWritten(1)).toBe(true); // the lock is free when the death is told of
  const reader = prefix.reader(0); // to look with only: the number is a thread's
  expect(reader.match(chain).depth(member)).toBe(2);
  orders.close();
});

test("a history that cannot be opened keeps the threads from starting, and is named", async () => {
  const { values } = resolveOptions(serveOptions, { args: ["--host", "127.0.0.1", "--port", "0"], env: {} });
  const log = createLogger({ level: "error", json: false, write: () => {} });
  const kept = { ...keptNowhere, history: { url: "redis://127.0.0.1:1" } };
  for (const count of [1, 2]) {
    const starting = startServingThreads(values, count, createBoards(values, count), log, testControl, kept);
    await expect(starting).rejects.toThrow(/store of responses/);
    await expect(starting).rejects.not.toThrow(/listen/);
  }
});
