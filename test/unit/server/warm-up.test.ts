import { expect, test } from "bun:test";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";
import type { ModelEntry } from "../../../src/fleet/snapshot.ts";
import { FleetView } from "../../../src/fleet/view.ts";
import { createApp } from "../../../src/server/app.ts";
import type { ServerContext } from "../../../src/server/context.ts";
import { RequestScopes } from "../../../src/server/request-scope.ts";
import { warmUp } from "../../../src/server/warm-up.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { createTokenizerCache } from "../../../src/tokenizer/cache/board.ts";
import { cacheStats } from "../../../src/tokenizer/cache/stats.ts";
import { testControl } from "../../support/control.ts";
import { testKept } from "../../support/kept.ts";
import { until } from "../../support/until.ts";
import { ScriptedEngine } from "../generation/scripted-engine.ts";
import { MODEL, modelEntry } from "./gateway.ts";

/** A thread with a worker that is ready, and what its app was handed and answered. */
function thread(args: readonly string[] = [], models: readonly ModelEntry[] = [modelEntry()]) {
  const { values: config } = resolveOptions(serveOptions, { args: [...args], env: {} });
  const board = FleetBoard.create(1);
  const slot = board.claim();
  board.setState(slot, WorkerState.ready);
  let connections = 0;
  const fleet = new FleetView(board, 0, () => {
    connections++;
    return new ScriptedEngine();
  });
  fleet.apply({
    expected: 1,
    workers: [{ id: "w", slot, url: "grpc://engine.internal:50051", dialect: "scripted", model: MODEL }],
    models,
    tokenizers: [],
  });
  const scopes = new RequestScopes(config.requestTimeoutSecs);
  const logged: string[] = [];
  const log = createLogger({ level: "debug", json: true, write: (line) => logged.push(line) });
  const context: ServerContext = {
    config,
    fleet,
    control: testControl,
    scopes,
    log,
    ...testKept(),
    draining: () => false,
  };
  const app = createApp(context);
  const asked: { model: string; stream?: boolean }[] = [];
  const answers: { status: number; text: Promise<string> }[] = [];
  return {
    board,
    slot,
    scopes,
    logged,
    asked,
    answers,
    connections: () => connections,
    app,
    warm: () =>
      warmUp({
        async handle(request) {
          asked.push((await request.clone().json()) as { model: string });
          const response = await app.fetch(request);
          const [first, second] = response.body?.tee() ?? [];
          answers.push({ status: response.status, text: new Response(first).text() });
          return new Response(second, response);
        },
        context,
        models: fleet.list().map(({ id }) => fleet.model(id)),
      }),
  };
}

test("chats go the whole way to an engine and back, and leave nothing behind", async () => {
  const tokenizerCache = createTokenizerCache({ l0: true, l1: true, l0Entries: 100, bytes: 1 << 20 });
  const untouched = Buffer.from(tokenizerCache).toString("base64");
  const at = thread(["--api-key", "secret"], [modelEntry({ tokenizerCache })]);
  await at.warm();
  expect(at.answers.length).toBeGreaterThan(4);
  expect(at.answers.map(({ status }) => status)).toEqual(at.answers.map(() => 200));
  const texts = await Promise.all(at.answers.map(({ text }) => text));
  for (const [i, text] of texts.entries()) {
    expect(text).toContain('"finish_reason":"length"');
    if (at.asked[i]?.stream) expect(text).toEndWith("data: [DONE]\n\n");
  }
  expect(new Set(at.asked.map(({ stream }) => stream === true)).size).toBe(2);

  expect(at.connections()).toBe(0);
  expect(at.board.running(at.slot)).toBe(0);
  expect(at.scopes.size).toBe(0);
  expect(at.logged).toEqual([]);
  expect(Buffer.from(tokenizerCache).toString("base64")).toBe(untouched);
  for (const { hits, misses, entries } of cacheStats(tokenizerCache))
    expect([hits, misses, entries]).toEqual([0, 0, 0]);
  // A request like them that is not rehearsed does go to the worker.
  const body = JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "Hi" }], stream: true });
  const request = new Request("http://localhost/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer secret" },
    body,
  });
  void at.app.fetch(request);
  await until(() => at.connections() > 0, "a connection");
  expect(at.connections()).toBe(1);
});

test("models that do not chat are left out", async () => {
  const at = thread(
    [],
    [
      modelEntry({ aliases: [] }),
      modelEntry({ id: "embeds", aliases: [], pooling: { matryoshka: undefined, classes: undefined } }),
      modelEntry({ id: "plain", aliases: [], template: undefined }),
    ],
  );
  await at.warm();
  expect([...new Set(at.asked.map(({ model }) => model))]).toEqual([MODEL]);
});

test("real requests come first, and it can be switched off", async () => {
  const busy = thread();
  const real = new AbortController();
  for (let i = 0; i < 4; i++) busy.scopes.begin(`real-${i}`, real.signal);
  await busy.warm();
  expect(busy.asked).toEqual([]);
  const off = thread(["--warmup=off"]);
  await off.warm();
  expect(off.asked).toEqual([]);
});
