/** Interactions that were stored: to be read, streamed again, cancelled, deleted. */
import { InvalidRequestError, NotFoundError } from "../../errors.ts";
import type { HistoryStore, StoredResponse } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { idHeaders } from "../errors.ts";
import { cancelRun } from "../shared/background.ts";
import { isUnfinished } from "../shared/history.ts";
import { endLost, isLost } from "../shared/lost-run.ts";
import { jsonResponse } from "../shared/paging.ts";
import { type Position, positionOf } from "./events.ts";
import { followInteraction, replayedFrames } from "./follow.ts";
import { InteractionCancelledError } from "./writer.ts";

/** How long a cancel waits for the one who works on the interaction. */
const CANCEL_WAIT_MS = 5000;
const LOOK_MS = 50;

/** No interaction of this id, or one of another tenant: the words are the same. */
const unknown = (id: string): NotFoundError => new NotFoundError(`Interaction '${id.slice(0, 100)}' not found.`);

interface Found {
  readonly history: HistoryStore;
  readonly row: StoredResponse;
}

/** The row of an interaction, whose end is told if its runner is gone. Throws NotFoundError. */
async function find({ history }: ServerContext, tenant: string, id: string): Promise<Found> {
  let row = (await history?.getResponse(tenant, id)) ?? null;
  if (history === null || row?.kind !== "interaction") throw unknown(id);
  if (isUnfinished(row.status) && isLost((await history.getState(tenant, id))?.updatedAt ?? null)) {
    await endLost(history, tenant, id);
    row = await history.getResponse(tenant, id);
    if (row === null) throw unknown(id);
  }
  return { history, row };
}

/** `GET /v1beta/interactions/{id}`. Finishes the scope, with a stream when that ends. Throws GatewayErrors. */
export async function getInteraction(
  id: string,
  query: URLSearchParams,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  let streams = false;
  try {
    const { tenant } = scope;
    const isStream = query.get("stream") === "true";
    const after = lastEvent(query, isStream);
    const headers = idHeaders("google", scope.id);
    const { history, row } = await find(context, tenant, id);
    if (!isStream) return jsonResponse(query.get("include_input") === "true" ? withInput(row) : row.body, headers);
    if (!isUnfinished(row.status))
      return new Response(replayedFrames(row.body, after), {
        headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", ...headers },
      });
    streams = true;
    return followInteraction({ id, tenant, after: after?.sequence ?? -1 }, history, context, scope, headers);
  } finally {
    if (!streams) scope.finish();
  }
}

function lastEvent(query: URLSearchParams, isStream: boolean): Position | undefined {
  const id = query.get("last_event_id");
  if (id === null || id === "") return undefined;
  const param = "last_event_id";
  if (!isStream) throw new InvalidRequestError("last_event_id needs stream to be true", { param });
  const position = positionOf(id);
  if (position === undefined) throw new InvalidRequestError("last_event_id is not the id of an event", { param });
  return position;
}

const withInput = ({ body, input }: StoredResponse): string => `${body.slice(0, -1)},"input":[${input.join(",")}]}`;

/** `DELETE /v1beta/interactions/{id}`: work on it ends. Throws NotFoundError. */
export async function deleteInteraction(id: string, tenant: string, context: ServerContext): Promise<Response> {
  const { history } = await find(context, tenant, id);
  if (!(await history.deleteResponse(tenant, id))) throw unknown(id);
  context.runs.get(id)?.abort(new InteractionCancelledError());
  return jsonResponse("{}");
}

/**
 * `POST /v1beta/interactions/{id}/cancel`: of one in the background, wherever it runs. What is over stays as it is. Waits for the end for
 * some seconds, and gives the interaction as it is then. Throws GatewayErrors.
 */
export async function cancelInteraction(id: string, scope: RequestScope, context: ServerContext): Promise<Response> {
  const { tenant } = scope;
  const { history, row } = await find(context, tenant, id);
  if (isUnfinished(row.status)) {
    await cancelRun(id, tenant, new InteractionCancelledError(), history, context);
    const until = performance.now() + CANCEL_WAIT_MS;
    while (performance.now() < until && !scope.signal.aborted) {
      const state = await history.getState(tenant, id);
      if (state === null || state.updatedAt === null) break;
      await Bun.sleep(LOOK_MS);
    }
  }
  const { row: now } = await find(context, tenant, id);
  return jsonResponse(now.body, idHeaders("google", scope.id));
}
