/**
 * Work that goes on without its client. The history's row and log are the truth, which all threads and gateways read: the status
 * `canceling` asks the one who works on it to stop, and a row that nobody has updated for `LEASE_MS` has lost its runner.
 */
import { type GatewayError, NotFoundError } from "../../errors.ts";
import { type HistoryStore, UNFINISHED_STATUSES } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import type { BackgroundRun } from "../../server/runs.ts";
import { EventLog } from "./event-log.ts";
import { endLost, LEASE_MS } from "./lost-run.ts";

export interface RunSpec {
  readonly id: string;
  readonly tenant: string;
  /** What a cancel ends it with. */
  readonly cancelled: () => GatewayError;
  /**
   * Works until the final state is stored: first `log.close()`, then the row, as long as its status is one of `UNFINISHED_STATUSES`. The
   * scope is the run's own.
   */
  readonly work: (scope: RequestScope, log: EventLog) => Promise<unknown>;
}

const WATCH_MS = 500;
const logs = new WeakMap<BackgroundRun, EventLog>();

/** The log of a run of this thread. */
export const logOf = (run: BackgroundRun): EventLog | undefined => logs.get(run);

/** Starts the work on what lies in the history as `queued`. A shutdown of the gateway waits for it, and ends it after its grace. */
export function startRun(
  { id, tenant, cancelled, work }: RunSpec,
  history: HistoryStore,
  context: ServerContext,
): BackgroundRun {
  const scope = context.scopes.begin(id, new AbortController().signal, tenant);
  const abort = (reason: GatewayError) => scope.abort(reason);
  const log = new EventLog(history, { tenant, id }, abort);

  async function whole(): Promise<void> {
    const stopWatch = watch({ id, tenant, cancelled }, history, abort);
    try {
      const begun = await history.updateResponse({
        tenant,
        id,
        updatedAt: Date.now(),
        ifStatus: ["queued"],
        status: "in_progress",
      });
      if (begun === "not_found") return;
      if (begun === "other_status") abort(cancelled());
      await work(scope, log);
    } catch (error) {
      context.log.error("work in the background failed", { request: id, error });
    } finally {
      stopWatch();
      // whatever has happened, it is over
      await endLost(history, tenant, id, "Internal error").catch((error: unknown) =>
        context.log.warn("the end of work in the background could not be stored", {
          request: id,
          error: String(error),
        }),
      );
      scope.finish();
    }
  }
  const run: BackgroundRun = { id, done: whole(), abort };
  logs.set(run, log);
  context.runs.add(run);
  return run;
}

/** Sees that a run was cancelled or deleted, or ended by others, and says that it still goes on. */
function watch(
  { id, tenant, cancelled }: Pick<RunSpec, "id" | "tenant" | "cancelled">,
  history: HistoryStore,
  abort: (reason: GatewayError) => void,
): () => void {
  let renewedAt = Date.now();
  let asking = false;
  async function look(): Promise<void> {
    const state = await history.getState(tenant, id);
    if (state === null) abort(new NotFoundError(`'${id}' was deleted`));
    else if (state.status === "canceling" || state.updatedAt === null) abort(cancelled());
    if (Date.now() - renewedAt < LEASE_MS / 3) return;
    const updatedAt = Date.now();
    await history.updateResponse({ tenant, id, updatedAt, ifStatus: UNFINISHED_STATUSES });
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

/** Asks a run to stop, wherever it is. Nothing happens to what is over. */
export async function cancelRun(
  id: string,
  tenant: string,
  reason: GatewayError,
  history: HistoryStore,
  { runs }: Pick<ServerContext, "runs">,
): Promise<void> {
  const ifStatus = UNFINISHED_STATUSES.filter((status) => status !== "canceling");
  await history.updateResponse({ tenant, id, updatedAt: Date.now(), ifStatus, status: "canceling" });
  runs.get(id)?.abort(reason);
}
