/** One serving thread with its real server and a real gRPC engine connection. */
import { afterEach, expect, test } from "bun:test";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";
import { createBoards, memoryOf } from "../../../src/fleet/boards.ts";
import { type Serving, startServing } from "../../../src/server/serving.ts";
import { type FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { testControl } from "../../support/control.ts";
import { testKept } from "../../support/kept.ts";
import { until } from "../../support/until.ts";
import { startVllmServer, type VllmServer } from "../../support/vllm-server.ts";
import { readFrames } from "../apis/chat/chunks.ts";
import { encode } from "../generation/demo-tokenizer.ts";
import { MODEL, modelEntry, rawRequest } from "./gateway.ts";

let serving: Serving | undefined;
let engine: VllmServer | undefined;
afterEach(async () => {
  await serving?.stop();
  engine?.close();
  serving = undefined;
  engine = undefined;
});

function start(args: string[], port = 0): { url: string; board: FleetBoard; slot: number; serving: Serving } {
  const { values: config } = resolveOptions(serveOptions, {
    args: ["--host", "127.0.0.1", "--log-level", "error", ...args],
    env: {},
  });
  const boards = createBoards(config, 1);
  const board = boards.fleet;
  const slot = board.claim();
  board.setState(slot, WorkerState.ready);
  serving = startServing({ config, boards: memoryOf(boards), thread: 0, port, threads: 1 }, testControl, testKept());
  return { url: `http://127.0.0.1:${serving.port}`, board, slot, serving };
}

/** An engine that gives one token at once and the rest when told, and notes whether it was cancelled. */
async function startEngine() {
  const rest = Promise.withResolvers<void>();
  const state = { cancelled: false };
  const ids = encode("Hello");
  const chunk = { token_ids: ids, prompt_tokens: 3, completion_tokens: ids.length };
  engine = await startVllmServer({
    Generate: async (call) => {
      call.gone.then(() => {
        state.cancelled = true;
      });
      call.send({ chunk });
      await rest.promise;
      call.send({
        complete: { output_ids: ids, finish_reason: "stop", prompt_tokens: 3, completion_tokens: ids.length },
      });
      call.end();
    },
  });
  return { port: engine.port, state, goOn: () => rest.resolve() };
}

const post = (url: string, headers: Record<string, string> = {}) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify({ model: MODEL, stream: true, messages: [{ role: "user", content: "Hi" }] }),
  });

test("a body above the limit gets an error that can be read, however far above and however it is announced", async () => {
  const limit = 2_000_000; // above the least limit that Bun can be given
  const { url, serving } = start(["--max-payload-size", String(limit)]);
  const target = `${url}/v1/chat/completions`;
  for (const size of [limit + 1, limit + 2, 3 * limit]) {
    const bodies = [
      " ".repeat(size),
      new ReadableStream({
        start(controller) {
          for (let left = size; left > 0; left -= 100_000) controller.enqueue(new Uint8Array(Math.min(left, 100_000)));
          controller.close();
        },
      }),
    ];
    for (const body of bodies) {
      const response = await fetch(target, { method: "POST", body });
      expect(response.status).toBe(413);
      expect(await response.json()).toMatchObject({ error: { code: "payload_too_large", param: null } });
    }
  }
  const head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999\r\n\r\n";
  const answer = await rawRequest(serving.port, head);
  expect(answer).toStartWith("HTTP/1.1 413");
  expect(answer).toContain("payload_too_large");
  expect((await fetch(target, { method: "POST", body: " ".repeat(limit) })).status).toBe(400);
});

test("draining lets a running stream finish and takes no new request", async () => {
  const { url, board, slot, serving } = start([]);
  const stub = await startEngine();
  serving.apply({
    expected: 1,
    workers: [{ id: "w", slot, url: `grpc://127.0.0.1:${stub.port}`, dialect: "vllm", model: MODEL }],
    models: [modelEntry()],
    tokenizers: [],
  });
  const running = await post(url);
  expect(running.status).toBe(200);
  expect(board.running(slot)).toBe(1);
  let drained = false;
  const drain = serving.drain(10_000).then(() => {
    drained = true;
  });
  const late = await post(url).then(
    (response) => response.status,
    () => "refused",
  );
  expect(["refused", 503]).toContain(late);
  expect([drained, stub.state.cancelled]).toEqual([false, false]);
  stub.goOn();
  const read = readFrames(await running.text());
  expect([read.done, read.error]).toEqual([true, undefined]);
  await drain;
  expect(board.running(slot)).toBe(0);
});

test("when the grace is over the rest is told, and the engine freed", async () => {
  const { url, board, slot, serving } = start([]);
  const stub = await startEngine();
  serving.apply({
    expected: 1,
    workers: [{ id: "w", slot, url: `grpc://127.0.0.1:${stub.port}`, dialect: "vllm", model: MODEL }],
    models: [modelEntry()],
    tokenizers: [],
  });
  const running = await post(url);
  const text = running.text();
  await serving.drain(50);
  const read = readFrames(await text);
  expect([read.done, read.error?.["code"]]).toEqual([false, "shutting_down"]);
  expect(board.running(slot)).toBe(0);
  await until(() => stub.state.cancelled === true, "the engine is told");
  stub.goOn();
});

test("an idle thread drains at once", async () => {
  const { serving } = start([]);
  const began = performance.now();
  await serving.drain(60_000);
  expect(performance.now() - began).toBeLessThan(20_000);
});

test("a port that is taken is an error at the start", () => {
  const { serving } = start([]);
  const first = serving;
  expect(() => start([], first.port)).toThrow();
});
