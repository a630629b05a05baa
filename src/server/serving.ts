import { createSealer } from "../apis/shared/seal.ts";
import type { ServeConfig } from "../config/serve-options.ts";
import { createEngine } from "../engines/create.ts";
import { createHttpEngine } from "../engines/http/create.ts";
import { type BoardsMemory, openBoards } from "../fleet/boards.ts";
import type { Control } from "../fleet/control-link.ts";
import { countingObserver } from "../fleet/dispatch/observer.ts";
import { dispatchPolicy } from "../fleet/dispatch/policy.ts";
import { routingOf } from "../fleet/routing.ts";
import type { FleetSnapshot, ModelEntry } from "../fleet/snapshot.ts";
import { FleetView } from "../fleet/view.ts";
import { workerTls } from "../fleet/worker-tls.ts";
import { type HistorySetting, openHistory } from "../history/open.ts";
import { UseFlag } from "../history/use-flag.ts";
import { createLogger } from "../telemetry/log.ts";
import { type Counted, MetricRegistry } from "../telemetry/registry.ts";
import { startHeapCare } from "../threads/heap-care.ts";
import { dropStartPages } from "../threads/start-pages.ts";
import { Admission } from "./admission.ts";
import { createApp } from "./app.ts";
import type { ServerContext } from "./context.ts";
import { watchLostRuns } from "./lost-runs.ts";
import { RequestMetrics } from "./request-metrics.ts";
import { RequestScopes } from "./request-scope.ts";
import { responsesSocket } from "./responses-socket.ts";
import { RunRegistry } from "./runs.ts";
import { warmUp } from "./warm-up.ts";

export interface ServingOptions {
  readonly config: ServeConfig;
  readonly boards: BoardsMemory;
  /** This thread's column on the board. */
  readonly thread: number;
  readonly port: number;
  /** Serving threads of the process; several listen on one port. */
  readonly threads: number;
  readonly kept: KeptOptions;
}

/** What serving threads keep for clients, and where. */
export interface KeptOptions {
  readonly history: HistorySetting;
  /** The key of seals. All gateways that share a history need the same. */
  readonly sealingKey: Uint8Array;
  /** Memory of the history's `UseFlag`. */
  readonly used: SharedArrayBuffer;
}

/** The same, opened for one serving thread. */
export interface Kept extends Pick<ServerContext, "history" | "sealer"> {
  readonly used: UseFlag;
}

/**
 * Opens it for one serving thread. `port`: to the process's `HistoryThread`, where there is one. Throws HistorySetupError and
 * HistoryUnavailableError.
 */
export async function openKept(
  { history, sealingKey, used }: KeptOptions,
  port: MessagePort | undefined,
): Promise<Kept> {
  return { history: await openHistory(history, port), sealer: createSealer(sealingKey), used: new UseFlag(used) };
}

/** One serving thread's whole work: the app on a port, its view of the fleet, its engine connections. */
export interface Serving {
  readonly hostname: string;
  readonly port: number;
  apply(snapshot: FleetSnapshot): void;
  /** A worker was taken out: requests that have not begun there go elsewhere. */
  lost(slot: number): void;
  /** What this thread has counted since its start. */
  counted(): Counted;
  /** Takes no new work and resolves when all running requests are done; after `graceMs` the rest is told and ended. */
  drain(graceMs: number): Promise<void>;
  /** Closes what is left. */
  stop(): Promise<void>;
}

/** Idle connections are cut after this; a request's own connection never is, once it is authenticated. */
const IDLE_SECS = 60;
/** How long the error events of a shutdown may take to reach their clients. */
const LAST_WORDS_MS = 1000;

/** Pause after a model was loaded before the way in is warmed up and what loading left behind is freed. */
const TIDY_AFTER_MS = 500;

/** `kept` is closed when the serving stops. */
export function startServing(
  { config, boards: memory, thread, threads, port }: Omit<ServingOptions, "kept">,
  control: Control,
  { used, ...kept }: Kept,
): Serving {
  const reusePort = threads > 1;
  const log = createLogger({ level: config.logLevel, json: config.logJson, ...(reusePort && { fields: { thread } }) });
  const counts = new MetricRegistry();
  const boards = openBoards(memory, thread);
  const tls = workerTls(config);
  const fleet = new FleetView(
    boards.fleet,
    thread,
    (worker) =>
      createEngine(worker, {
        transport: config.engineTransport,
        keepaliveMs: config.engineKeepaliveSecs * 1000,
        connectTimeoutMs: config.connectTimeoutMs,
        connections: config.engineConnections,
        ...(tls !== undefined && { tls }),
      }),
    {
      policy: dispatchPolicy(config),
      createHttpEngine: ({ url, facts, apiKey = config.workerApiKey }) =>
        // one that speaks HTTP has always told of itself
        createHttpEngine(url, facts!, { apiKey, connectTimeoutMs: config.connectTimeoutMs, tls }),
      cacheChecks: {
        verifyShare: config.tokenizerCacheVerify,
        onMismatch: (model, { level, hits, mismatches }) =>
          log.error("the tokenizer cache gave wrong token ids and is off now; please report this", {
            model,
            level,
            hits,
            mismatches,
          }),
      },
      retryBudget: boards.limits,
      routing: routingOf(config, boards, thread),
      observer: countingObserver(counts, ({ url }, became) =>
        log[became === "open" ? "warn" : "info"](`the circuit breaker of a worker is ${became}`, { worker: url }),
      ),
      onBrokenTemplate: (model, problem) => {
        if (thread > 0) return; // the others find the same
        log.error("a chat template of the model is broken: chats that need it are refused", { model, problem });
      },
    },
  );
  const admission = boards.limits.isLimited ? new Admission(boards.limits, config.queueTimeoutSecs, counts) : undefined;
  const scopes = new RequestScopes(config.requestTimeoutSecs, (scope) => admission?.leave(scope));
  let draining = false;
  const context: ServerContext = {
    config,
    fleet,
    control,
    scopes,
    admission,
    log,
    metrics: new RequestMetrics(counts),
    ...kept,
    runs: new RunRegistry(),
    draining: () => draining,
  };
  const app = createApp(context);
  const socket = responsesSocket(context);
  const server = Bun.serve({
    hostname: config.host,
    port,
    reusePort,
    development: false,
    idleTimeout: IDLE_SECS,
    // Bun would answer a larger body with an empty 413; the limit is ours to keep, with an error that clients can read.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: (request, server) => (socket.wants(request) ? socket.upgrade(request, server) : app.fetch(request)),
    websocket: socket.handler,
    error: () => new Response(null, { status: 500 }),
  });
  app.serveFrom(server);
  const heapCare = startHeapCare(scopes);
  scopes.onBusy = heapCare.busy;
  // one thread of a gateway is enough
  const stopWatch = thread === 0 ? watchLostRuns(context, used) : () => {};
  const tidied = new Set<string>();
  const tidying = new Set<ReturnType<typeof setTimeout>>();

  return {
    hostname: server.hostname ?? config.host,
    port: server.port ?? port,
    apply(snapshot) {
      fleet.apply(snapshot);
      const load = ({ id, created }: ModelEntry) => `${created} ${id}`;
      const fresh = fleet.list().filter((entry) => !tidied.has(load(entry)));
      if (fresh.length === 0) return;
      for (const entry of fresh) tidied.add(load(entry));
      const timer = setTimeout(() => {
        tidying.delete(timer);
        const models = fresh.filter(({ id }) => fleet.list().some((entry) => entry.id === id));
        warmUp({ handle: app.fetch, context, models: models.map(({ id }) => fleet.model(id)) })
          .catch((error: unknown) => log.debug("warm-up failed", { error }))
          .finally(() => {
            heapCare.collect();
            // once, and of the whole process: also what the warm-up has compiled is needed no more
            if (thread === 0 && tidied.size === fresh.length) dropStartPages();
          });
      }, TIDY_AFTER_MS);
      tidying.add(timer);
    },
    lost: (slot) => fleet.workerLost(slot),
    counted: () => counts.counted(),
    async drain(graceMs) {
      draining = true;
      socket.drain();
      const stopped = server.stop();
      const idle = scopes.whenIdle();
      let timer: ReturnType<typeof setTimeout> | undefined;
      const expired = new Promise<"expired">((resolve) => {
        timer = setTimeout(() => resolve("expired"), graceMs);
      });
      if ((await Promise.race([idle, expired])) === "expired") {
        log.warn("shutdown grace is over: ending running requests", { requests: scopes.size });
        scopes.abortAll();
        await Promise.race([Promise.all([idle, stopped]), Bun.sleep(LAST_WORDS_MS)]);
      }
      clearTimeout(timer);
      await Promise.race([stopped, Bun.sleep(200)]); // answers that are still on their way to slow readers
    },
    async stop() {
      heapCare.stop();
      stopWatch();
      for (const timer of tidying) clearTimeout(timer);
      await server.stop(true);
      fleet.close();
      await kept.history?.close();
    },
  };
}
