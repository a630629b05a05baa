import type { ServeConfig } from "../config/serve-options.ts";
import { type Boards, forgetThread, memoryOf } from "../fleet/boards.ts";
import { answerer, type Control } from "../fleet/control-link.ts";
import { emptyFleet, type FleetSnapshot } from "../fleet/snapshot.ts";
import { HistorySetupError } from "../history/errors.ts";
import { workerUrl } from "../program.ts";
import { type KeptOptions, openKept, startServing } from "../server/serving.ts";
import type { Logger } from "../telemetry/log.ts";
import { type Counted, summed } from "../telemetry/registry.ts";
import type { FromThread, ToThread } from "./messages.ts";

/** All serving threads of the process, whatever their number. */
export interface ServingThreads {
  readonly hostname: string;
  readonly port: number;
  /** Resolves when every thread knows the new fleet. */
  apply(snapshot: FleetSnapshot): Promise<void>;
  /** A worker was taken out: requests that have not begun there go elsewhere. */
  lost(slot: number): void;
  /** What all threads have counted, those that have died among them. */
  counted(): Promise<Counted>;
  /** Resolves when every thread has stopped, or has had its time for it. */
  shutdown(graceMs: number): Promise<void>;
  /** A thread hangs and cannot be ended: only a new process helps. */
  isStuck(): boolean;
}

/** The port cannot be had, or a thread cannot start. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/** What all serving threads keep for clients, with a way to the thread that holds it, where there is one. */
export interface KeptForThreads extends KeptOptions {
  /** A port for one thread; undefined where each connects itself. */
  connect(): MessagePort | undefined;
}

/** With one thread everything runs on the calling thread; with more, in workers that share the port. */
export async function startServingThreads(
  config: ServeConfig,
  threads: number,
  boards: Boards,
  log: Logger,
  control: Control,
  kept: KeptForThreads,
  entry: URL = workerUrl("threads/serving-thread"),
  pingMs = PING_MS,
): Promise<ServingThreads> {
  if (threads > 1) return startWorkers(config, threads, boards, log, control, kept, entry, pingMs);
  const opened = await openKept(kept, kept.connect());
  try {
    const options = { config, boards: memoryOf(boards), thread: 0, threads: 1, port: config.port };
    const serving = startServing(options, control, opened);
    return {
      hostname: serving.hostname,
      port: serving.port,
      async apply(snapshot) {
        serving.apply(snapshot);
      },
      lost: (slot) => serving.lost(slot),
      counted: async () => serving.counted(),
      async shutdown(graceMs) {
        await serving.drain(graceMs);
        await serving.stop();
      },
      isStuck: () => false, // the thread that would tell is this one
    };
  } catch (error) {
    await opened.history?.close();
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
  /** Questions since it last said something. */
  unanswered: number;
  /** What it has counted, when it last told. */
  counted: Counted;
  /** Deaths since the thread last lived for a while. */
  deaths: number;
}

/** Shortest and longest pause before a dead thread is started again. */
const RESTART_MS = [50, 5000] as const;
/** How often threads are asked for a sign of life. */
const PING_MS = 5000;
/** After so many questions without an answer a thread is ended, or counts as stuck. Time alone says nothing: a machine may sleep. */
const HUNG_AFTER = 6;
const STUCK_AFTER = 12;
/** A scrape waits no longer for a thread that is busy: what it told last counts. */
const COUNTED_MS = 1000;
/** What a thread may take beyond the grace period to end its requests. */
const SHUTDOWN_MARGIN_MS = 3000;

async function startWorkers(
  config: ServeConfig,
  count: number,
  boards: Boards,
  log: Logger,
  control: Control,
  { connect, history, sealingKey, used }: KeptForThreads,
  entry: URL,
  pingMs: number,
): Promise<ServingThreads> {
  if (config.port !== 0) probePort(config);
  const threads: Thread[] = Array.from({ length: count }, () => ({
    worker: undefined,
    version: 0,
    waiting: new Set(),
    unanswered: 0,
    counted: {},
    deaths: 0,
  }));
  /** What threads that have died had counted. */
  let former: Counted = {};
  let fleet = emptyFleet;
  let version = 0;
  let stopping = false;
  let bound: { hostname: string; port: number } | undefined;
  const drained: (() => void)[] = [];

  function start(index: number): Promise<{ hostname: string; port: number }> {
    const thread = threads[index]!;
    const worker = new Worker(entry);
    thread.worker = worker;
    const questions = answerer(control, (id, answer) => tell(worker, { type: "answer", id, answer }));
    const since = Date.now();
    thread.unanswered = 0;
    return new Promise((resolve, reject) => {
      worker.addEventListener("message", ({ data }: MessageEvent<FromThread>) => {
        thread.unanswered = 0;
        if (data.type === "listening") resolve(data);
        else if (data.type === "failed") {
          reject(data.what === "port" ? new ListenError(data.message) : new HistorySetupError(data.message));
          worker.terminate(); // once it has served, it is started again
        } else if (data.type === "applied") {
          thread.version = data.version;
          for (const check of thread.waiting) check();
        } else if (data.type === "metrics") {
          thread.counted = data.counted;
          for (const check of thread.waiting) check();
        } else if (data.type === "drained") drained[index]?.();
        else if (data.type === "question") questions.asked(data.id, data.question);
        else if (data.type === "forget") questions.forgotten(data.id);
      });
      worker.addEventListener("error", (event) =>
        log.error("serving thread failed", { thread: index, error: event.message }),
      );
      worker.addEventListener("close", () => {
        questions.close();
        reject(new ListenError("the serving thread ended"));
        thread.worker = undefined;
        former = summed([former, thread.counted]);
        thread.counted = {};
        forgetThread(boards, index);
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
      const kept = { history, sealingKey, used };
      const options = { config, boards: memoryOf(boards), thread: index, threads: count, port, kept };
      const historyPort = connect();
      const message: ToThread = { type: "start", options, fleet, historyPort };
      worker.postMessage(message, historyPort === undefined ? [] : [historyPort]);
    });
  }

  const tell = (worker: Worker, message: ToThread) => worker.postMessage(message);

  /** Resolves when a thread has told what it has counted by now, or is gone. */
  function newlyCounted(thread: Thread): Promise<void> | undefined {
    const { worker, counted } = thread;
    if (worker === undefined) return undefined;
    tell(worker, { type: "metrics" });
    return new Promise((resolve) => {
      const check = () => {
        if (thread.counted === counted && thread.worker !== undefined) return;
        thread.waiting.delete(check);
        resolve();
      };
      thread.waiting.add(check);
    });
  }

  /** Ends a thread that has been silent for long; a loop in native code cannot be ended, and then the thread is stuck. */
  const pings = setInterval(() => {
    for (const [index, thread] of threads.entries()) {
      if (thread.worker === undefined) continue;
      tell(thread.worker, { type: "ping" });
      if (++thread.unanswered !== HUNG_AFTER) continue;
      log.error("serving thread hangs; ending it", { thread: index });
      thread.worker.terminate();
    }
  }, pingMs);
  pings.unref();

  try {
    bound = await start(0);
    await Promise.all(threads.slice(1).map((_, i) => start(i + 1)));
  } catch (error) {
    stopping = true;
    clearInterval(pings);
    for (const { worker } of threads) worker?.terminate();
    throw error instanceof HistorySetupError ? error : listenError(config, error);
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
    lost(slot) {
      for (const { worker } of threads) if (worker !== undefined) tell(worker, { type: "lost", slot });
    },
    async counted() {
      await Promise.race([Promise.all(threads.map(newlyCounted)), Bun.sleep(COUNTED_MS)]);
      return summed([former, ...threads.map(({ counted }) => counted)]);
    },
    isStuck: () => threads.some(({ worker, unanswered }) => worker !== undefined && unanswered >= STUCK_AFTER),
    async shutdown(graceMs) {
      stopping = true;
      clearInterval(pings);
      const all = Promise.all(
        threads.map(({ worker }, index) => {
          if (worker === undefined) return undefined;
          const done = new Promise<void>((resolve) => {
            drained[index] = resolve;
          });
          tell(worker, { type: "drain", graceMs });
          return done;
        }),
      );
      await Promise.race([all, Bun.sleep(graceMs + SHUTDOWN_MARGIN_MS)]);
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
