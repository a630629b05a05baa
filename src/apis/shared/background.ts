/**
 * Work that goes on without its client. The history's row and log are the truth, which all threads and gateways read: the status
 * `canceling` asks the one who works on it to stop, and a row that nobody has updated for `LEASE_MS` has lost its runner.
 */
import type { GatewayError } from "../../errors.ts";
import { HistoryUnavailableError } from "../../history/errors.ts";
import { type HistoryStore, type NewResponse, type ResponseState, UNFINISHED_STATUSES } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import type { BackgroundRun } from "../../server/runs.ts";
import { EventLog, RunOverError } from "./event-log.ts";
import { endLost, type LostKind } from "./lost-run.ts";
import { watchRow } from "./row-watch.ts";
import { retryStore } from "./store-retry.ts";

export interface RunSpec {
  readonly id: string;
  readonly tenant: string;
  /** The client's request: who chooses a worker for another try of it goes by that. */
  readonly route: RequestScope["route"];
  readonly lost: LostKind;
  /** What a cancel ends it with. */
  readonly cancelled: () => GatewayError;
  /** Works until the final state is stored, by `end`, which takes the row as it is to be. The scope is the run's own. */
  readonly work: (scope: RequestScope, log: EventLog, end: (row: NewResponse) => Promise<void>) => Promise<unknown>;
}

const logs = new WeakMap<BackgroundRun, EventLog>();

/** The log of a run of this thread. */
export const logOf = (run: BackgroundRun): EventLog | undefined => logs.get(run);

/** Starts the work on what lies in the history as `queued`. A shutdown of the gateway waits for it, and ends it after its grace. */
export function startRun(
  { id, tenant, route, lost, cancelled, work }: RunSpec,
  history: HistoryStore,
  context: ServerContext,
): BackgroundRun {
  const scope = context.scopes.begin(id, new AbortController().signal, tenant);
  scope.route = route;
  let message = "Internal error";
  function abort(reason: GatewayError): void {
    if (reason instanceof HistoryUnavailableError) message = reason.message;
    scope.abort(reason);
  }
  const log = new EventLog(history, { tenant, id }, abort);

  /** It was cancelled or deleted, or ended by others. */
  function reason(state: ResponseState | null): GatewayError | undefined {
    if (state === null || state.updatedAt === null) return new RunOverError();
    return state.status === "canceling" ? cancelled() : undefined;
  }
  /** Stores all events, then the end in the row, where nobody has ended it before. */
  async function end(row: NewResponse): Promise<void> {
    try {
      await log.close();
      await storeEnd(row, history);
    } catch (error) {
      if (error instanceof HistoryUnavailableError) message = error.message;
      throw error;
    }
  }
  async function whole(): Promise<void> {
    const stopWatch = watchRow({ id, tenant, unfinished: UNFINISHED_STATUSES, reason }, history, abort);
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
      await work(scope, log, end);
    } catch (error) {
      if (error instanceof HistoryUnavailableError) message = error.message;
      context.log.error("work in the background failed", { request: id, error });
    } finally {
      stopWatch();
      // whatever has happened, it is over
      await endLost(history, tenant, id, lost, message).catch((error: unknown) =>
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

async function storeEnd(
  { tenant, id, status, body, output, itemIds, conversationItems }: NewResponse,
  history: HistoryStore,
): Promise<void> {
  // made or not, it can be tried again: the first end holds
  await retryStore(() =>
    history.updateResponse({
      tenant,
      id,
      updatedAt: Date.now(),
      ifStatus: UNFINISHED_STATUSES,
      status,
      result: { body, output, itemIds },
      ...(conversationItems !== undefined && { conversationItems }),
    }),
  );
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
