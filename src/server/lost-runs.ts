import { endLost, LEASE_MS } from "../apis/shared/lost-run.ts";
import type { HistoryStore } from "../history/store.ts";
import type { ServerContext } from "./context.ts";

const LOOK_MS = 10_000;
const AT_ONCE = 100;

/**
 * Ends the work in the background whose gateway or thread is gone, of all tenants, also where nobody asks for it. Gives what stops it.
 */
export function watchLostRuns({ history, log }: Pick<ServerContext, "history" | "log">, lookMs = LOOK_MS): () => void {
  if (history === null) return () => {};
  let looking = false;
  async function look(store: HistoryStore): Promise<void> {
    for (const { tenant, id, kind } of await store.listUnfinished(Date.now() - LEASE_MS, AT_ONCE)) {
      if (kind === "batch") continue;
      await endLost(store, tenant, id);
      log.info("work in the background had lost its server and has failed", { id });
    }
  }
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    look(history)
      .catch((error: unknown) => log.debug("lost work was not looked for", { error: String(error) }))
      .finally(() => {
        looking = false;
      });
  }, lookMs);
  timer.unref();
  return () => clearInterval(timer);
}
