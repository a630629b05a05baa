/** What control does for the history of all serving threads: the thread that holds it, and retention. */
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { HistorySetupError } from "../history/errors.ts";
import { parseHistoryUrl } from "../history/location.ts";
import { type HistorySetting, type HistoryThread, openHistory, startHistoryThread } from "../history/open.ts";
import type { HistoryStore } from "../history/store.ts";
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

/** Opens the history, once a process. Throws HistorySetupError and HistoryUnavailableError. */
export async function startHistoryKeeper(options: KeeperOptions): Promise<HistoryKeeper> {
  const { history, sealingKey, retentionDays, log, onEnd, sweepMs = SWEEP_MS } = options;
  let ending = false;
  let thread: HistoryThread | undefined;
  let store: HistoryStore | null;
  makeFile(history.url);
  try {
    thread = await startHistoryThread(history, workerUrl("history/thread"), (message) => {
      if (!ending) onEnd(message);
    });
    // for retention alone
    store = await openHistory({ ...history, maxConnections: 1 }, thread?.connect());
  } catch (error) {
    await thread?.close();
    throw error;
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
        for (let some = 1; some > 0 && !stopped; removed += some) some = await kept.removeExpired(before, AT_ONCE);
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
    connect: () => thread?.connect(),
    async close() {
      ending = true;
      stopSweeping();
      await store?.close();
      await thread?.close();
    },
  };
}

/** Makes the file that a store is in, for its owner alone: others must not read what clients said. */
function makeFile(url: string): void {
  const location = parseHistoryUrl(url);
  if (location.type !== "sqlite") return;
  try {
    mkdirSync(dirname(location.path), { recursive: true, mode: 0o700 });
    closeSync(openSync(location.path, "a", 0o600));
  } catch (error) {
    throw new HistorySetupError(`cannot make the history in ${location.path}: ${(error as Error).message}`);
  }
}

/** The same; where the history that nobody has chosen cannot be opened, in memory, with a warning. */
export async function startHistoryKeeperOr(options: KeeperOptions, byDefault: boolean): Promise<HistoryKeeper> {
  try {
    return await startHistoryKeeper(options);
  } catch (error) {
    if (!byDefault || !(error instanceof HistorySetupError)) throw error;
    options.log.warn("the history is kept in memory: it is gone after a restart", { error: error.message });
    return startHistoryKeeper({ ...options, history: { ...options.history, url: "memory" } });
  }
}
