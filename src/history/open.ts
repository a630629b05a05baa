import { checkedHistory } from "./checked.ts";
import { HistorySetupError, HistoryUnavailableError } from "./errors.ts";
import { type CallBatch, remoteHistory } from "./host.ts";
import { type HistoryLocation, parseHistoryUrl } from "./location.ts";
import type { MemoryLimits } from "./memory.ts";
import { openPostgres } from "./postgres.ts";
import { openRedis } from "./redis/open.ts";
import { parseSchema } from "./schema.ts";
import type { HistoryStore } from "./store.ts";
import type { FromHistoryThread, ThreadTarget, ToHistoryThread } from "./thread-messages.ts";

export interface HistorySetting {
  /** As `parseHistoryUrl` reads it. */
  readonly url: string;
  /** Names of tables and columns, in SMG's form (`parseSchema`). */
  readonly schema?: unknown;
  readonly memory?: MemoryLimits;
  /** Connections to PostgreSQL of each serving thread; 4 if not given. */
  readonly maxConnections?: number;
  /** After so long without an answer a call fails; 30 s if not given. */
  readonly timeoutMs?: number;
}

const MEMORY_LIMITS: MemoryLimits = { maxEntries: 10_000, maxBytes: 256 << 20 };
const CONNECT_TIMEOUT_SECS = 10;
const CLOSE_MS = 5000;

/** The thread that holds the store of a process, where it needs one: for memory and SQLite. */
export interface HistoryThread {
  /** A port for one serving thread, to be transferred to it and given to `openHistory`. */
  connect(): MessagePort;
  /** Takes over the other end of such a port. `first`: what has come over it already. */
  serve(port: MessagePort, first?: CallBatch): void;
  /** After the last answer; what is asked later gets none. */
  close(): Promise<void>;
}

/**
 * Starts it, once a process, and opens the store in it. Undefined where each serving thread connects itself (PostgreSQL, Redis, none).
 * `entry` is where `thread.ts` lies. `onEnd` is told, once, if the thread ends by itself, which no call does. Throws `HistorySetupError`.
 */
export async function startHistoryThread(
  setting: HistorySetting,
  entry: URL,
  onEnd: (message: string) => void,
): Promise<HistoryThread | undefined> {
  const target = targetOf(parseHistoryUrl(setting.url), setting);
  if (target === undefined) return undefined;
  const worker = new Worker(entry) as Worker & { unref(): void };
  let ending = false;
  const answer = (type: FromHistoryThread["type"]): Promise<FromHistoryThread> =>
    new Promise((resolve, reject) => {
      worker.addEventListener("message", ({ data }: MessageEvent<FromHistoryThread>) => {
        if (data.type === type) resolve(data);
      });
      worker.addEventListener("error", ({ message }) => reject(new HistorySetupError(message)));
    });
  const gone = Promise.withResolvers<void>();
  function over(message: string): void {
    gone.resolve();
    if (ending) return;
    ending = true;
    onEnd(message);
  }
  worker.addEventListener("error", ({ message }) => over(message));
  worker.addEventListener("close", () => over("it has closed"));
  const opened = answer("opened");
  worker.postMessage({ type: "open", target } satisfies ToHistoryThread);
  const result = await opened;
  if (result.type === "opened" && result.failure !== undefined) {
    ending = true;
    worker.terminate();
    throw new HistorySetupError(result.failure);
  }
  worker.unref();
  const serve = (port: MessagePort, first?: CallBatch): void =>
    worker.postMessage({ type: "serve", port, first } satisfies ToHistoryThread, [port]);
  return {
    connect: () => connection(serve),
    serve,
    async close() {
      ending = true;
      const closed = answer("closed");
      worker.postMessage({ type: "close" } satisfies ToHistoryThread);
      await Promise.race([closed, gone.promise, Bun.sleep(CLOSE_MS)]);
      worker.terminate();
    },
  };
}

/** One end of a channel whose other end is served. */
function connection(serve: (port: MessagePort) => void): MessagePort {
  const { port1, port2 } = new MessageChannel();
  serve(port1);
  return port2;
}

/**
 * A thread that `start` starts with the first call over any of its ports: many gateways never keep anything, and a thread takes memory and
 * a tenth of a start. `failed` is told when it cannot start; calls are not answered then.
 */
export function historyThreadWhenUsed(
  start: () => Promise<HistoryThread>,
  failed: (error: unknown) => void,
): Omit<HistoryThread, "serve"> {
  const unused = new Set<MessagePort>();
  let starting: Promise<HistoryThread> | undefined;

  function serve(port: MessagePort): void {
    unused.add(port);
    // A port has one batch on its way at a time, so this is all that has come when the thread takes over.
    port.onmessage = ({ data }: MessageEvent<CallBatch>) => {
      port.onmessage = null;
      unused.delete(port);
      starting ??= start();
      starting.then((thread) => thread.serve(port, data)).catch(failed);
    };
  }

  return {
    connect: () => connection(serve),
    async close() {
      for (const port of unused) port.close();
      await (await starting?.catch(() => undefined))?.close();
    },
  };
}

function targetOf(location: HistoryLocation, setting: HistorySetting): ThreadTarget | undefined {
  if (location.type === "memory") return { type: "memory", limits: setting.memory ?? MEMORY_LIMITS };
  if (location.type !== "sqlite") return undefined;
  return { type: "sqlite", path: location.path, schema: parseSchema(setting.schema ?? {}) };
}

/**
 * The store for one thread; null where nothing is kept. `port` is from `connect` of the process's `HistoryThread`, needed for memory
 * and SQLite. Throws `HistorySetupError`, or `HistoryUnavailableError` where the server cannot be reached.
 */
export async function openHistory(setting: HistorySetting, port?: MessagePort): Promise<HistoryStore | null> {
  const location = parseHistoryUrl(setting.url);
  const schema = parseSchema(setting.schema ?? {});
  const timeoutMs = setting.timeoutMs ?? 30_000;
  if (location.type === "none") return null;
  if (location.type === "postgres" || location.type === "redis") {
    const server = { url: location.url, schema, connectTimeoutSecs: CONNECT_TIMEOUT_SECS };
    const store =
      location.type === "redis"
        ? await openRedis(server)
        : await openPostgres({ ...server, maxConnections: setting.maxConnections ?? 4 });
    return checkedHistory(store, timeoutMs);
  }
  if (port === undefined) throw new HistoryUnavailableError(new Error("no port to the history's thread"));
  return checkedHistory(remoteHistory(port), timeoutMs);
}
