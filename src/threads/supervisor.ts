import type { ServeConfig } from "../config/serve-options.ts";
import { emptyFleet, type FleetSnapshot } from "../fleet/snapshot.ts";
import { workerUrl } from "../program.ts";
import { startServing } from "../server/serving.ts";
import type { Logger } from "../telemetry/log.ts";
import type { FleetBoard } from "./fleet-board.ts";
import type { FromThread, ToThread } from "./messages.ts";

/** All serving threads of the process, whatever their number. */
export interface ServingThreads {
  readonly hostname: string;
  readonly port: number;
  /** Resolves when every thread knows the new fleet. */
  apply(snapshot: FleetSnapshot): Promise<void>;
  /** Resolves when every thread has stopped. */
  shutdown(graceMs: number): Promise<void>;
}

/** The port cannot be had, or a thread cannot start. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/** With one thread everything runs on the calling thread; with more, in workers that share the port. */
export async function startServingThreads(
  config: ServeConfig,
  threads: number,
  board: FleetBoard,
  log: Logger,
  entry: URL = workerUrl("threads/serving-thread"),
): Promise<ServingThreads> {
  if (threads > 1) return startWorkers(config, threads, board, log, entry);
  try {
    const serving = startServing({ config, board: board.memory, thread: 0, threads: 1, port: config.port });
    return {
      hostname: serving.hostname,
      port: serving.port,
      async apply(snapshot) {
        serving.apply(snapshot);
      },
      async shutdown(graceMs) {
        await serving.drain(graceMs);
        await serving.stop();
      },
    };
  } catch (error) {
    throw listenError(config, error);
  }
}

function listenError(config: ServeConfig, error: unknown): ListenError {
  const { code, message } = error as { code?: string; message: string };
  const reason = code === "EADDRINUSE" ? "the address is in use; choose another with --port" : message;
  return new ListenError(`cannot listen on ${config.host}:${config.port}: ${reason}`, { cause: error });
}

interface Thread {
  worker: Worker | undefined;
  /** Version of the fleet that it knows. */
  version: number;
  /** Told when the thread has learnt something, or is gone. */
  readonly waiting: Set<() => void>;
  /** Deaths since the thread last lived for a while. */
  deaths: number;
}

/** Shortest and longest pause before a dead thread is started again. */
const RESTART_MS = [50, 5000] as const;

async function startWorkers(
  config: ServeConfig,
  count: number,
  board: FleetBoard,
  log: Logger,
  entry: URL,
): Promise<ServingThreads> {
  if (config.port !== 0) probePort(config);
  const threads: Thread[] = Array.from({ length: count }, () => ({
    worker: undefined,
    version: 0,
    waiting: new Set(),
    deaths: 0,
  }));
  let fleet = emptyFleet;
  let version = 0;
  let stopping = false;
  let bound: { hostname: string; port: number } | undefined;
  const drained: (() => void)[] = [];

  function start(index: number): Promise<{ hostname: string; port: number }> {
    const thread = threads[index]!;
    const worker = new Worker(entry);
    thread.worker = worker;
    const since = Date.now();
    return new Promise((resolve, reject) => {
      worker.addEventListener("message", ({ data }: MessageEvent<FromThread>) => {
        if (data.type === "listening") resolve(data);
        else if (data.type === "failed") {
          reject(new ListenError(data.message));
          worker.terminate(); // once it has served, it is started again
        } else if (data.type === "applied") {
          thread.version = data.version;
          for (const check of thread.waiting) check();
        } else drained[index]?.();
      });
      worker.addEventListener("error", (event) =>
        log.error("serving thread failed", { thread: index, error: event.message }),
      );
      worker.addEventListener("close", () => {
        reject(new ListenError("the serving thread ended"));
        thread.worker = undefined;
        board.forgetThread(index);
        drained[index]?.();
        for (const check of thread.waiting) check();
        if (stopping) return;
        thread.deaths = Date.now() - since > 60_000 ? 0 : thread.deaths + 1;
        const pause = Math.min(RESTART_MS[0] * 2 ** thread.deaths, RESTART_MS[1]);
        log.error("serving thread ended; starting it again", { thread: index, pause_ms: pause });
        setTimeout(() => {
          if (!stopping)
            start(index).catch((error: unknown) => log.error("serving thread did not start", { thread: index, error }));
        }, pause);
      });
      const port = bound?.port ?? config.port;
      tell(worker, {
        type: "start",
        options: { config, board: board.memory, thread: index, threads: count, port },
        fleet,
      });
    });
  }

  const tell = (worker: Worker, message: ToThread) => worker.postMessage(message);

  try {
    bound = await start(0);
    await Promise.all(threads.slice(1).map((_, i) => start(i + 1)));
  } catch (error) {
    stopping = true;
    for (const { worker } of threads) worker?.terminate();
    throw listenError(config, error);
  }
  return {
    ...bound,
    async apply(snapshot) {
      fleet = snapshot;
      const wanted = ++version;
      await Promise.all(
        threads.map((thread) => {
          if (thread.worker === undefined) return undefined; // it starts with the newest fleet
          const known = new Promise<void>((resolve) => {
            const check = () => {
              if (thread.version < wanted && thread.worker !== undefined) return;
              thread.waiting.delete(check);
              resolve();
            };
            thread.waiting.add(check);
          });
          tell(thread.worker, { type: "fleet", fleet, version: wanted });
          return known;
        }),
      );
    },
    async shutdown(graceMs) {
      stopping = true;
      await Promise.all(
        threads.map(({ worker }, index) => {
          if (worker === undefined) return undefined;
          const done = new Promise<void>((resolve) => {
            drained[index] = resolve;
          });
          tell(worker, { type: "drain", graceMs });
          return done;
        }),
      );
      for (const { worker } of threads) worker?.terminate();
    },
  };
}

/** Threads share the port, so a foreign listener that shares it too would not be noticed: try to have it alone first. */
function probePort(config: ServeConfig): void {
  try {
    Bun.listen({ hostname: config.host, port: config.port, exclusive: true, socket: { data() {} } }).stop(true);
  } catch (error) {
    throw listenError(config, error);
  }
}
