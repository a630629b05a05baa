import type { GatewayError } from "../../errors.ts";
import type { HistoryStore, ResponseState } from "../../history/store.ts";
import { LEASE_MS } from "./lost-run.ts";

const WATCH_MS = 500;

export interface WatchedRow {
  readonly tenant: string;
  readonly id: string;
  /** The statuses of a row that is worked on. */
  readonly unfinished: readonly string[];
  /** Why the work is to end, if it is; null: the row is gone. */
  readonly reason: (state: ResponseState | null) => GatewayError | undefined;
}

/**
 * Looks at the row of what this thread works on, from time to time: hands on why the work is to end, and says in the row that it still goes
 * on. Gives what ends the watch.
 */
export function watchRow(
  { tenant, id, unfinished: ifStatus, reason }: WatchedRow,
  history: HistoryStore,
  abort: (reason: GatewayError) => void,
): () => void {
  let renewedAt = Date.now();
  let asking = false;
  async function look(): Promise<void> {
    const why = reason(await history.getState(tenant, id));
    if (why !== undefined) abort(why);
    if (Date.now() - renewedAt < LEASE_MS / 3) return;
    const updatedAt = Date.now();
    await history.updateResponse({ tenant, id, updatedAt, ifStatus });
    renewedAt = updatedAt;
  }
  const timer = setInterval(() => {
    if (asking) return;
    asking = true;
    look()
      .catch(() => {}) // the store is away: the next look tells
      .finally(() => {
        asking = false;
      });
  }, WATCH_MS);
  return () => clearInterval(timer);
}
