import { endLost, LEASE_MS, type LostKind } from "../apis/shared/lost-run.ts";
import type { HistoryStore, ResponseKind } from "../history/store.ts";
import type { UseFlag } from "../history/use-flag.ts";
import type { ServerContext } from "./context.ts";

const LOOK_MS = 10_000;
const AT_ONCE = 100;

/** Null: its API looks after its own. */
const LOST: Readonly<Record<ResponseKind, (() => Promise<LostKind>) | null>> = {
  response: async () => (await import("../apis/responses-store/logged.ts")).LOST_RESPONSE,
  interaction: async () => (await import("../apis/interactions/logged.ts")).LOST_INTERACTION,
  batch: null,
};

/**
 * Ends the work in the background whose gateway or thread is gone, of all tenants, also where nobody asks for it. Gives what stops it. A
 * history that has never been `used` holds none.
 */
export function watchLostRuns(
  { history, log }: Pick<ServerContext, "history" | "log">,
  used: Pick<UseFlag, "isSet">,
  lookMs = LOOK_MS,
): () => void {
  if (history === null) return () => {};
  let looking = false;
  async function look(store: HistoryStore): Promise<void> {
    for (const { tenant, id, kind } of await store.listUnfinished(Date.now() - LEASE_MS, AT_ONCE)) {
      const lost = LOST[kind];
      if (lost === null) continue;
      await endLost(store, tenant, id, await lost());
      log.info("work in the background had lost its server and has failed", { id });
    }
  }
  const timer = setInterval(() => {
    if (looking || !used.isSet) return;
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
