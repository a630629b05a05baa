import { expect, test } from "bun:test";
import { handleChat } from "../../../../src/apis/chat/handle.ts";
import type { ChatRequest } from "../../../../src/apis/chat/schema.ts";
import { resolveOptions } from "../../../../src/config/resolve.ts";
import { serveOptions } from "../../../../src/config/serve-options.ts";
import { RequestTimeoutError } from "../../../../src/errors.ts";
import { FleetView } from "../../../../src/fleet/view.ts";
import type { ServerContext } from "../../../../src/server/context.ts";
import { RequestScopes } from "../../../../src/server/request-scope.ts";
import { createLogger } from "../../../../src/telemetry/log.ts";
import { FleetBoard, WorkerState } from "../../../../src/threads/fleet-board.ts";
import { testControl } from "../../../support/control.ts";
import { testKept } from "../../../support/kept.ts";
import { until } from "../../../support/until.ts";
import { encode, IM_END } from "../../generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../../generation/scripted-engine.ts";
import { MODEL, modelEntry } from "../../server/gateway.ts";

const ask: ChatRequest = { model: MODEL, messages: [{ role: "user", content: "Hi" }] };

function world(engine: ScriptedEngine, args: string[] = []) {
  const board = FleetBoard.create(1);
  const slot = board.claim();
  board.setState(slot, WorkerState.ready);
  const fleet = new FleetView(board, 0, () => engine);
  fleet.apply({
    expected: 1,
    workers: [{ id: "w", slot, url: "grpc://engine:1", dialect: "scripted", model: MODEL }],
    models: [modelEntry()],
    tokenizers: [],
  });
  const { values: config } = resolveOptions(serveOptions, { args, env: {} });
  const log = createLogger({ level: "error", json: true });
  const scopes = new RequestScopes(config.requestTimeoutSecs);
  const context: ServerContext = {
    config,
    fleet,
    control: testControl,
    scopes,
    log,
    ...testKept(),
    draining: () => false,
  };
  return { board, slot, context, scopes };
}

test.each([false, true])(
  "a client that left before the work began costs the engine nothing (stream %p)",
  async (stream) => {
    const engine = new ScriptedEngine();
    const { board, slot, context, scopes } = world(engine);
    const scope = scopes.begin("id", AbortSignal.abort());
    await expect(handleChat({ ...ask, stream }, context, scope)).rejects.toMatchObject({ status: 499 });
    expect(engine.calls.filter((call) => !call.ended)).toEqual([]);
    expect([scopes.size, board.running(slot)]).toEqual([0, 0]);
  },
);

test.each([false, true])("a client that leaves during prefill ends the engine's work (stream %p)", async (stream) => {
  const engine = new ScriptedEngine();
  const { board, slot, context, scopes } = world(engine);
  const client = new AbortController();
  const answer = handleChat({ ...ask, stream }, context, scopes.begin("id", client.signal));
  await until(() => engine.calls.length > 0, "the prompt is encoded");
  expect([scopes.size, board.running(slot)]).toEqual([1, 1]);
  client.abort();
  expect(engine.calls[0]?.cancelled).toBe(1);
  await expect(answer).rejects.toMatchObject({ status: 499 });
  expect([scopes.size, board.running(slot)]).toEqual([0, 0]);
});

test.each([false, true])("the time limit is a 504 before the first token (stream %p)", async (stream) => {
  const engine = new ScriptedEngine();
  const { board, slot, context } = world(engine);
  const scopes = new RequestScopes(0.5);
  const answer = handleChat({ ...ask, stream }, context, scopes.begin("id", new AbortController().signal));
  await expect(answer).rejects.toBeInstanceOf(RequestTimeoutError);
  expect(engine.calls[0]?.cancelled).toBe(1);
  expect([scopes.size, board.running(slot)]).toEqual([0, 0]);
});

test("a long prefill commits the status at the first heartbeat; a failure after that is a frame, without [DONE]", async () => {
  const engine = new ScriptedEngine();
  const { board, slot, context, scopes } = world(engine, ["--sse-heartbeat-secs", "1"]);
  const server = Bun.serve({
    port: 0,
    fetch: (request) => handleChat({ ...ask, stream: true }, context, scopes.begin("id", request.signal)),
  });
  const response = await fetch(`http://localhost:${server.port}`);
  expect(response.status).toBe(200);
  scopes.abortAll();
  const text = await response.text();
  expect(text).toMatch(
    /^(:\n\n)*data: \{"error":\{"message":"[^"]+","type":"[^"]+","param":null,"code":"shutting_down"\}\}\n\n$/,
  );
  expect(engine.calls[0]?.cancelled).toBe(1);
  expect([scopes.size, board.running(slot)]).toEqual([0, 0]);
  await server.stop(true);
});

test("prompt and sampling reach the engine; a stop string stays here while one choice is asked for", async () => {
  const engine = new ScriptedEngine((call) =>
    call
      .chunk([...encode("a STOP b"), IM_END])
      .finish({ completionTokens: 5 })
      .end(),
  );
  const { context, scopes } = world(engine);
  const send = async (body: Partial<ChatRequest>) => {
    const response = await handleChat({ ...ask, ...body }, context, scopes.begin("id", new AbortController().signal));
    return response.text();
  };
  await send({ stop: ["STOP"], temperature: 0.5, truncate_prompt_tokens: 4, data_parallel_rank: 3, rid: "mine" });
  await send({ stop: ["STOP"], n: 2 }).catch(() => undefined);
  const [one, two] = engine.calls.map(({ request }) => request);
  expect(one).toMatchObject({ stream: true, dataParallelRank: 3, sampling: { stop: [], temperature: 0.5, n: 1 } });
  expect(one?.tokenIds.length).toBe(4);
  expect(one?.requestId).toStartWith("mine-");
  expect(two).toMatchObject({ stream: true, sampling: { stop: ["STOP"], n: 2 } });
  expect(two?.requestId).not.toBe(one?.requestId);
});
