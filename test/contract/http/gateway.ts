/** A serving thread with its real server over HTTP engines, and over a simulated gRPC engine where a test wants one beside them. */
import OpenAI from "openai";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";
import { connectHttpEngine } from "../../../src/engines/http/create.ts";
import { createBoards, memoryOf } from "../../../src/fleet/boards.ts";
import { HTTP_DIALECT, type HttpModelEntry, type ModelEntry, type WorkerEntry } from "../../../src/fleet/snapshot.ts";
import { type Serving, startServing } from "../../../src/server/serving.ts";
import { type FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { testControl } from "../../support/control.ts";
import { testKept } from "../../support/kept.ts";

export interface HttpGateway {
  readonly url: string;
  readonly board: FleetBoard;
  readonly serving: Serving;
  readonly api: OpenAI;
  /** Slots of the workers, in their order. */
  readonly slots: readonly number[];
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>;
  /** Requests in flight at all workers. */
  running(): number;
  stop(): Promise<void>;
}

export interface GatewayOptions {
  readonly args?: readonly string[];
  /** URLs of HTTP engines. */
  readonly http: readonly string[];
  /** What is special of them, in their order. */
  readonly special?: readonly Partial<WorkerEntry>[];
  /** Of a gRPC engine of the vLLM dialect that serves the model as well, with what the gateway knows of it. */
  readonly grpc?: { readonly url: string; readonly entry: ModelEntry; readonly special?: Partial<WorkerEntry> };
  /** What clients call the model; the first id of each server by default. */
  readonly model?: string;
  readonly aliases?: readonly string[];
  readonly apiKey?: string;
}

export async function startHttpGateway(options: GatewayOptions): Promise<HttpGateway> {
  const { args = [], http, special = [], grpc, aliases = [], apiKey } = options;
  const { values: config } = resolveOptions(serveOptions, {
    args: ["--host", "127.0.0.1", "--log-level", "error", "--warmup=off", ...args],
    env: {},
  });
  const boards = createBoards(config, 1);
  const board = boards.fleet;
  const claimed = (): number => {
    const slot = board.claim();
    board.setState(slot, WorkerState.ready);
    return slot;
  };
  const workers: WorkerEntry[] = [];
  const httpModels = new Map<string, HttpModelEntry>();
  for (const [at, url] of http.entries()) {
    const engine = await connectHttpEngine(url, { deadlineMs: 2000, apiKey });
    const slot = claimed();
    for (const { id: served, contextLength } of await engine.models(2000)) {
      const id = options.model ?? served;
      httpModels.set(id, { id, aliases, contextLength, created: 1_700_000_000 });
      workers.push({
        id: `w${slot}`,
        slot,
        url,
        dialect: HTTP_DIALECT,
        model: id,
        facts: engine.facts,
        apiKey,
        ...special[at],
      });
    }
    engine.close();
  }
  if (grpc !== undefined) {
    const slot = claimed();
    workers.push({ id: `w${slot}`, slot, url: grpc.url, dialect: "vllm", model: grpc.entry.id, ...grpc.special });
  }
  const members = boards.prefix.writer();
  for (const [at, worker] of workers.entries()) workers[at] = { member: members.claim(worker.slot, 0), ...worker };
  const serving = startServing(
    { config, boards: memoryOf(boards), thread: 0, port: 0, threads: 1 },
    testControl,
    testKept(),
  );
  serving.apply({
    workers,
    expected: workers.length,
    models: grpc === undefined ? [] : [grpc.entry],
    httpModels: [...httpModels.values()],
    tokenizers: [],
  });
  const slots = [...new Set(workers.map(({ slot }) => slot))];
  const url = `http://127.0.0.1:${serving.port}`;
  return {
    url,
    board,
    serving,
    slots,
    api: new OpenAI({ baseURL: `${url}/v1`, apiKey: "a client's key", maxRetries: 0 }),
    post: (path, body, init = {}) =>
      fetch(url + path, {
        method: "POST",
        body: typeof body === "string" ? body : JSON.stringify(body),
        ...init,
        headers: { "content-type": "application/json", ...init.headers },
      }),
    running: () => slots.reduce((sum, slot) => sum + board.running(slot), 0),
    stop: () => serving.stop(),
  };
}
