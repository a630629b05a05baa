/** One serving thread's app on a real port, over a fleet whose engines are scripted. */
import type { Sealer } from "../../../src/apis/shared/seal.ts";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { type ServeConfig, serveOptions } from "../../../src/config/serve-options.ts";
import { createBoards } from "../../../src/fleet/boards.ts";
import type { Control } from "../../../src/fleet/control-link.ts";
import { dispatchPolicy } from "../../../src/fleet/dispatch/policy.ts";
import type { FleetSnapshot, ModelEntry } from "../../../src/fleet/snapshot.ts";
import { FleetView } from "../../../src/fleet/view.ts";
import type { HistoryStore } from "../../../src/history/store.ts";
import { Admission } from "../../../src/server/admission.ts";
import { createApp } from "../../../src/server/app.ts";
import type { ServerContext } from "../../../src/server/context.ts";
import { RequestScopes } from "../../../src/server/request-scope.ts";
import { type ResponsesSocket, responsesSocket } from "../../../src/server/responses-socket.ts";
import type { RunRegistry } from "../../../src/server/runs.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { type FleetBoard, WorkerState } from "../../../src/threads/fleet-board.ts";
import { LimitBoard } from "../../../src/threads/limit-board.ts";
import { testControl } from "../../support/control.ts";
import { testHistory, testKept } from "../../support/kept.ts";
import { demoHandle, demoTemplate, END_OF_TEXT, IM_END } from "../generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../generation/scripted-engine.ts";

export const MODEL = "org/demo-model";

export function modelEntry(more: Partial<ModelEntry> = {}): ModelEntry {
  return {
    id: MODEL,
    aliases: ["demo"],
    tokenizer: demoHandle,
    tokenizerCache: undefined,
    template: demoTemplate,
    quietEosTokenIds: [],
    parsers: { reasoning: undefined, tool: undefined },
    eosTokenIds: [IM_END, END_OF_TEXT],
    contextLength: 4096,
    defaultSampling: {},
    created: 1_700_000_000,
    ...more,
  };
}

export interface Gateway {
  readonly url: string;
  readonly port: number;
  readonly engine: ScriptedEngine;
  readonly scopes: RequestScopes;
  readonly board: FleetBoard;
  readonly limits: LimitBoard;
  readonly slot: number;
  readonly logged: string[];
  /** The fleet that it began with. */
  readonly snapshot: FleetSnapshot;
  readonly fleet: FleetView;
  readonly history: HistoryStore | null;
  readonly sealer: Sealer;
  readonly runs: RunRegistry;
  /** Every route of the app, without the one for paths that no route has. */
  routes(): Promise<readonly { readonly method: string; readonly path: string }[]>;
  readonly socket: ResponsesSocket;
  draining: boolean;
  post(body: unknown, headers?: Record<string, string>): Promise<Response>;
  stop(): Promise<void>;
}

export function startGateway(
  args: string[] = [],
  engine = new ScriptedEngine(),
  models = [modelEntry()],
  idleTimeout = 10,
  control: Control = testControl,
  history: HistoryStore | null = testHistory(),
): Gateway {
  const { values } = resolveOptions(serveOptions, { args, env: {} });
  const config: ServeConfig = values;
  const boards = createBoards(config, 1);
  const board = boards.fleet;
  const slot = board.claim();
  board.setState(slot, WorkerState.ready);
  const fleet = new FleetView(board, 0, () => engine, { policy: dispatchPolicy(config) });
  const snapshot: FleetSnapshot = {
    expected: 1,
    workers: [{ id: "w", slot, url: "grpc://engine.internal:50051", dialect: "scripted", model: MODEL }],
    models,
    tokenizers: [],
  };
  fleet.apply(snapshot);
  const limits = LimitBoard.open(boards.limits.memory, 0);
  const admission = limits.isLimited ? new Admission(limits, config.queueTimeoutSecs) : undefined;
  const scopes = new RequestScopes(config.requestTimeoutSecs, (scope) => admission?.leave(scope));
  const logged: string[] = [];
  const log = createLogger({ level: "debug", json: true, write: (line) => logged.push(line) });
  const kept = testKept(history);
  const context: ServerContext = {
    config,
    fleet,
    control,
    scopes,
    admission,
    log,
    ...kept,
    draining: () => gateway.draining,
  };
  const app = createApp(context);
  const socket = responsesSocket(context);
  const server = Bun.serve({
    port: 0,
    development: false,
    idleTimeout,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: (request, server) => (socket.wants(request) ? socket.upgrade(request, server) : app.fetch(request)),
    websocket: socket.handler,
    error: (error) => new Response(`the app threw: ${error.stack}`, { status: 500 }),
  });
  app.serveFrom(server);
  const url = `http://localhost:${server.port}`;
  const gateway: Gateway = {
    url,
    port: server.port ?? 0,
    engine,
    scopes,
    board,
    limits,
    slot,
    logged,
    snapshot,
    fleet,
    ...kept,
    socket,
    routes: () => app.routes(),
    draining: false,
    post: (body, headers = {}) =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    async stop() {
      await server.stop(true);
      fleet.close();
      await history?.close();
    },
  };
  return gateway;
}

/** Everything a server answers to bytes on a fresh connection, until it closes or `patienceMs` have passed. */
export async function rawRequest(port: number, text: string, patienceMs = 2000): Promise<string> {
  let answer = "";
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_, bytes) {
        answer += bytes.toString("latin1");
      },
      close: () => resolve(),
      error: () => resolve(),
    },
  });
  socket.write(text);
  const timer = setTimeout(() => socket.end(), patienceMs);
  await promise;
  clearTimeout(timer);
  return answer;
}
