/** What was stored of answers that may still be worked on: to be found, cancelled, deleted. */
import type { GatewayError, NotFoundError } from "../../errors.ts";
import type { HistoryStore, StoredResponse } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { cancelRun } from "./background.ts";
import { isUnfinished } from "./history.ts";
import { endLost, isLost, type LostKind } from "./lost-run.ts";

/** How long a cancel waits for the one who works on it. */
const CANCEL_WAIT_MS = 5000;
const LOOK_MS = 50;

/** Which of an API's things they are. */
export interface RunKind {
  readonly lost: LostKind;
  /** None of this id, or one of another tenant: the words are the same. */
  readonly unknown: (id: string) => NotFoundError;
  /** What a cancel ends the work with. */
  readonly cancelled: () => GatewayError;
}

export interface FoundRun {
  readonly history: HistoryStore;
  readonly row: StoredResponse;
}

/** The row, whose end is told if its runner is gone. Throws NotFoundError. */
export async function findRun(
  { lost, unknown }: RunKind,
  id: string,
  tenant: string,
  { history }: Pick<ServerContext, "history">,
): Promise<FoundRun> {
  let row = (await history?.getResponse(tenant, id)) ?? null;
  if (history === null || row?.kind !== lost.kind) throw unknown(id);
  if (isUnfinished(row.status) && isLost((await history.getState(tenant, id))?.updatedAt ?? null)) {
    await endLost(history, tenant, id, lost);
    row = await history.getResponse(tenant, id);
    if (row === null) throw unknown(id);
  }
  return { history, row };
}

/** Deletes it; work on it ends. Throws NotFoundError. */
export async function deleteRun(of: RunKind, id: string, tenant: string, context: ServerContext): Promise<void> {
  const { history } = await findRun(of, id, tenant, context);
  if (!(await history.deleteResponse(tenant, id))) throw of.unknown(id);
  context.runs.get(id)?.abort(of.cancelled());
}

/**
 * Cancels it, wherever it runs; what is over stays as it is. Waits for the end for some seconds, and gives the row as it is then. Throws
 * NotFoundError where it has been deleted meanwhile.
 */
export async function cancelFound(
  of: RunKind,
  { history, row }: FoundRun,
  { signal }: Pick<RequestScope, "signal">,
  context: ServerContext,
): Promise<StoredResponse> {
  const { id, tenant } = row;
  if (isUnfinished(row.status)) {
    await cancelRun(id, tenant, of.cancelled(), history, context);
    const until = performance.now() + CANCEL_WAIT_MS;
    while (performance.now() < until && !signal.aborted) {
      const state = await history.getState(tenant, id);
      if (state === null || state.updatedAt === null) break;
      await Bun.sleep(LOOK_MS);
    }
  }
  return (await findRun(of, id, tenant, context)).row;
}
