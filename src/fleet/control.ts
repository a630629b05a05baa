import type { Environment } from "../config/given.ts";
import type { ServeConfig } from "../config/serve-options.ts";
import { connectEngine } from "../engines/connect.ts";
import { createEngine } from "../engines/create.ts";
import type { Engine } from "../engines/engine.ts";
import type { Logger } from "../telemetry/log.ts";
import { type FleetBoard, WorkerState } from "../threads/fleet-board.ts";
import type { Compute, Control } from "./control-link.ts";
import { ModelCatalog } from "./model-catalog.ts";
import type { FleetSnapshot, WorkerEntry } from "./snapshot.ts";
import { TokenizerRegistry } from "./tokenizers.ts";

export interface FleetControl extends Pick<Control, "addTokenizer" | "removeTokenizer"> {
  /** Resolves when the first worker is ready. */
  readonly ready: Promise<WorkerEntry>;
  close(): void;
}

/** A check of an unhealthy worker comes after this at the latest, so that it returns soon. */
const UNHEALTHY_CHECK_MS = 5000;
const FIRST_PAUSE_MS = 100;

/** One spelling for one worker. */
function normalUrl(url: string): string {
  return url.replace(/\/$/, "").toLowerCase();
}

/**
 * Brings the workers up, loads the models they serve, and watches their health. `publish` gets the fleet at every change of
 * who is in it and resolves when everybody knows it; states go to the board. `compute` builds tables that are not at hand;
 * `environment` holds the settings of a model hub.
 */
export function startFleetControl(
  config: ServeConfig,
  board: FleetBoard,
  log: Logger,
  cacheDir: string | undefined,
  compute: Compute,
  publish: (snapshot: FleetSnapshot) => Promise<void>,
  environment: Environment = process.env,
): FleetControl {
  const closing = new AbortController();
  const catalog = new ModelCatalog(config, cacheDir, compute, { environment, log, signal: closing.signal });
  const workers: WorkerEntry[] = [];
  const engines = new Set<Engine>();
  let onReady!: (worker: WorkerEntry) => void;
  const ready = new Promise<WorkerEntry>((resolve) => {
    onReady = resolve;
  });

  const urls = [...new Set(config.workerUrls.map(normalUrl))];
  const tell = () =>
    publish({
      workers: [...workers],
      expected: urls.length,
      models: catalog.entries(),
      tokenizers: tokenizers.entries(),
    });
  const told = () =>
    tell().catch((error: unknown) => log.error("the fleet could not be told to all threads", { error }));
  const tellSoon = () => void told();
  const tokenizers = new TokenizerRegistry(catalog, log, (name) => catalog.has(name), tellSoon);

  const engineOptions = { transport: config.engineTransport, keepaliveMs: config.engineKeepaliveSecs * 1000 };

  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const over = () => {
        clearTimeout(timer);
        closing.signal.removeEventListener("abort", over);
        resolve();
      };
      const timer = setTimeout(over, ms);
      closing.signal.addEventListener("abort", over);
    });

  async function bringUp(url: string, slot: number): Promise<WorkerEntry> {
    const deadline = config.healthCheckTimeoutSecs * 1000;
    const engine = await connectEngine(url, { ...engineOptions, detectDeadlineMs: deadline });
    try {
      const health = await engine.health(deadline);
      if (!health.healthy) throw new Error(`the engine says it is not healthy: ${health.message}`);
      const info = await engine.modelInfo(deadline);
      const model = await catalog.add(info, engine);
      const waitsForReasoning = await constraintsWait(engine, deadline);
      return { id: url, slot, url, dialect: engine.dialect, model, waitsForReasoning };
    } finally {
      engine.close();
    }
  }

  async function run(url: string): Promise<void> {
    const slot = board.claim();
    const started = Date.now();
    let wait = FIRST_PAUSE_MS;
    let complained = "";
    while (!closing.signal.aborted) {
      try {
        const entry = await bringUp(url, slot);
        if (closing.signal.aborted) return;
        if (!workers.some(({ id }) => id === entry.id)) workers.push(entry); // there already if publishing failed before
        await tell();
        board.setState(slot, WorkerState.ready);
        log.info("worker is ready", { worker: url, dialect: entry.dialect, model: entry.model });
        onReady(entry);
        if (!config.disableHealthCheck) await watch(entry);
        return;
      } catch (error) {
        const text = (error as Error).message;
        const overdue = Date.now() - started > config.workerStartupTimeoutSecs * 1000;
        if (text !== complained || overdue)
          log[overdue ? "error" : "warn"]("worker is not ready yet", { worker: url, error });
        complained = text;
        await pause(wait);
        wait = Math.min(wait * 1.5, config.workerStartupCheckInterval * 1000);
      }
    }
  }

  async function watch(entry: WorkerEntry): Promise<void> {
    const engine = createEngine(entry, engineOptions);
    engines.add(engine);
    let failures = 0;
    let successes = 0;
    while (!closing.signal.aborted) {
      const healthy = board.state(entry.slot) === WorkerState.ready;
      const interval = config.healthCheckIntervalSecs * 1000;
      await pause(healthy && failures === 0 ? interval : Math.min(interval, UNHEALTHY_CHECK_MS));
      if (closing.signal.aborted) return;
      const problem = await check(engine);
      if (problem === undefined) {
        failures = 0;
        successes++;
        if (!healthy && successes >= config.healthSuccessThreshold) {
          board.setState(entry.slot, WorkerState.ready);
          log.info("worker is healthy again", { worker: entry.url });
        }
      } else {
        successes = 0;
        failures++;
        log.debug("health check failed", { worker: entry.url, failures, problem });
        if (healthy && failures >= config.healthFailureThreshold) {
          board.setState(entry.slot, WorkerState.unhealthy);
          log.warn("worker is unhealthy", { worker: entry.url, problem });
        }
      }
    }
  }

  async function check(engine: Engine): Promise<string | undefined> {
    try {
      const { healthy, message } = await engine.health(config.healthCheckTimeoutSecs * 1000);
      return healthy ? undefined : message;
    } catch (error) {
      return (error as Error).message;
    }
  }

  tellSoon();
  for (const url of urls) {
    run(url).catch((error: unknown) => log.error("worker task failed", { worker: url, error }));
  }
  return {
    ready,
    // Answered when all threads know: the client's next request may come to any of them.
    async addTokenizer(wanted) {
      const entry = tokenizers.add(wanted);
      await told();
      return entry;
    },
    async removeTokenizer(id) {
      const removed = tokenizers.remove(id);
      await told();
      return removed;
    },
    close() {
      closing.abort();
      for (const engine of engines) engine.close();
    },
  };
}

/** `WorkerEntry.waitsForReasoning` of an engine. */
async function constraintsWait(engine: Engine, deadlineMs: number): Promise<boolean | undefined> {
  try {
    const start = (await engine.serverInfo(deadlineMs)).labels["constrained_decoding_start"];
    return start === "after_reasoning" ? true : start === "first_token" ? false : undefined;
  } catch {
    return undefined; // it serves without telling of itself
  }
}
