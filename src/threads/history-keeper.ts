/** What control does for the history of all serving threads: the thread that holds it, and retention. */
import { closeSync, fstatSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { HistorySetupError } from "../history/errors.ts";
import { parseHistoryUrl } from "../history/location.ts";
import {
  type HistorySetting,
  type HistoryThread,
  historyThreadWhenUsed,
  openHistory,
  startHistoryThread,
} from "../history/open.ts";
import type { HistoryStore } from "../history/store.ts";
import { UseFlag } from "../history/use-flag.ts";
import { workerUrl } from "../program.ts";
import type { Logger } from "../telemetry/log.ts";
import type { KeptForThreads } from "./supervisor.ts";

export interface HistoryKeeper extends KeptForThreads {
  close(): Promise<void>;
}

export interface KeeperOptions {
  readonly history: HistorySetting;
  readonly sealingKey: Uint8Array;
  /** Days after which what was kept is removed; undefined keeps it. */
  readonly retentionDays: number | undefined;
  readonly log: Logger;
  /** The thread that holds the store has ended by itself: nothing can be kept any more. */
  readonly onEnd: (message: string) => void;
  /** Pause before the first look at what is too old, and between two. */
  readonly sweepMs?: readonly [number, number];
}

const SWEEP_MS = [60_000, 3_600_000] as const;
const DAY_MS = 86_400_000;
/** Rows that one statement removes: others get their turn between two. */
const AT_ONCE = 500;

/**
 * Opens the history, once a process; `unasked`: when it is first used, and in memory where it cannot be opened then. Throws
 * HistorySetupError and HistoryUnavailableError.
 */
export async function startHistoryKeeper(options: KeeperOptions, unasked = false): Promise<HistoryKeeper> {
  const { history, sealingKey, retentionDays, log, onEnd, sweepMs = SWEEP_MS } = options;
  const used = new UseFlag();
  let ending = false;
  let thread: Pick<HistoryThread, "connect" | "close"> | undefined;
  let store: HistoryStore | null;
  const ended = (message: string): void => {
    if (!ending) onEnd(message);
  };
  const { type } = parseHistoryUrl(history.url);
  const whenUsed = type === "memory" || (type === "sqlite" && unasked);
  if (makeFile(history.url) > 0 || !whenUsed) used.set();
  try {
    thread = whenUsed
      ? historyThreadWhenUsed(startUnasked, (error) => ended(String(error)))
      : await startThread(history.url);
    // for retention alone
    store = await openHistory({ ...history, maxConnections: 1 }, thread?.connect());
  } catch (error) {
    await thread?.close();
    throw error;
  }
  async function startThread(url: string): Promise<HistoryThread | undefined> {
    return startHistoryThread({ ...history, url }, workerUrl("history/thread"), ended);
  }

  async function startUnasked(): Promise<HistoryThread> {
    used.set();
    let started: HistoryThread | undefined;
    try {
      started = await startThread(history.url);
    } catch (error) {
      if (!(error instanceof HistorySetupError)) throw error;
      warnOfMemory(log, error);
    }
    started ??= await startThread("memory");
    if (started === undefined) throw new HistorySetupError("the history needs no thread");
    return started;
  }

  const stopSweeping = store === null || retentionDays === undefined ? () => {} : sweeping(store, retentionDays);

  function sweeping(kept: HistoryStore, days: number): () => void {
    let timer = setTimeout(sweep, sweepMs[0]);
    timer.unref();
    let stopped = false;
    async function sweep(): Promise<void> {
      try {
        const before = Date.now() - days * DAY_MS;
        let removed = 0;
        for (let some = used.isSet ? 1 : 0; some > 0 && !stopped; removed += some)
          some = await kept.removeExpired(before, AT_ONCE);
        if (removed > 0) log.info("removed what was kept for long enough", { rows: removed, days });
      } catch (error) {
        log.warn("what is too old could not be removed from the history", { error });
      }
      if (stopped) return;
      timer = setTimeout(sweep, sweepMs[1]);
      timer.unref();
    }
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }

  return {
    history,
    sealingKey,
    used: used.memory,
    connect: () => thread?.connect(),
    async close() {
      ending = true;
      stopSweeping();
      await store?.close();
      await thread?.close();
    },
  };
}

/** Makes the file that a store is in, for its owner alone: others must not read what clients said. Gives its size. */
function makeFile(url: string): number {
  const location = parseHistoryUrl(url);
  if (location.type !== "sqlite") return 0;
  try {
    mkdirSync(dirname(location.path), { recursive: true, mode: 0o700 });
    const file = openSync(location.path, "a", 0o600);
    const { size } = fstatSync(file);
    closeSync(file);
    return size;
  } catch (error) {
    throw new HistorySetupError(`cannot make the history in ${location.path}: ${(error as Error).message}`);
  }
}

function warnOfMemory(log: Logger, { message }: Error): void {
  log.warn("the history is kept in memory: it is gone after a restart", { error: message });
}

/** The same; where the history that nobody has chosen cannot be opened, in memory, with a warning. */
export async function startHistoryKeeperOr(options: KeeperOptions, byDefault: boolean): Promise<HistoryKeeper> {
  try {
    return await startHistoryKeeper(options, byDefault);
  } catch (error) {
    if (!byDefault || !(error instanceof HistorySetupError)) throw error;
    warnOfMemory(options.log, error);
    return startHistoryKeeper({ ...options, history: { ...options.history, url: "memory" } });
  }
}
