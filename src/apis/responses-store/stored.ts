/** Responses that were stored: to be read, listed, cancelled, deleted. */
import { InvalidRequestError, NotFoundError, PreconditionError } from "../../errors.ts";
import { memberText } from "../../history/json-text.ts";
import type { HistoryStore, StoredResponse } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { idHeaders } from "../errors.ts";
import { ResponseCancelledError } from "../responses/errors.ts";
import { cancelRun } from "../shared/background.ts";
import { isUnfinished, shownStatus } from "../shared/history.ts";
import { endLost, isLost } from "../shared/lost-run.ts";
import { jsonResponse, listResponse, pageRequest } from "../shared/paging.ts";
import { followResponse } from "./follow.ts";

/** How long a cancel waits for the one who works on the response. */
const CANCEL_WAIT_MS = 5000;
const LOOK_MS = 50;

/** No response of this id, or one of another tenant: the words are the same. */
const unknown = (id: string): NotFoundError => new NotFoundError(`Response with id '${id.slice(0, 100)}' not found.`);

interface Found {
  readonly history: HistoryStore;
  readonly row: StoredResponse;
}

/** The row of a response, whose end is told if its runner is gone. Throws NotFoundError. */
async function find({ history }: ServerContext, tenant: string, id: string): Promise<Found> {
  let row = (await history?.getResponse(tenant, id)) ?? null;
  if (history === null || row?.kind !== "response") throw unknown(id);
  if (isUnfinished(row.status) && isLost((await history.getState(tenant, id))?.updatedAt ?? null)) {
    await endLost(history, tenant, id);
    row = await history.getResponse(tenant, id);
    if (row === null) throw unknown(id);
  }
  return { history, row };
}

/** The object that clients see. The body of one that is being worked on is of the time when it was queued. */
function shown({ status, body }: StoredResponse): Response {
  return jsonResponse(
    isUnfinished(status) ? body.replace('"status":"queued"', `"status":"${shownStatus(status)}"`) : body,
  );
}

const isInBackground = ({ body }: StoredResponse): boolean => memberText(body, "background") === "true";

/** `GET /v1/responses/{id}`. Finishes the scope, with a stream when that ends. Throws GatewayErrors. */
export async function retrieveResponse(
  id: string,
  query: URLSearchParams,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  let streams = false;
  try {
    const after = startingAfter(query);
    const { history, row } = await find(context, scope.tenant, id);
    if (query.get("stream") !== "true") return shown(row);
    if (!isInBackground(row))
      throw new InvalidRequestError("Only responses that were created with background can be streamed again", {
        param: "stream",
      });
    streams = true;
    return followResponse({ id, tenant: scope.tenant, after }, history, context, scope, idHeaders("openai", scope.id));
  } finally {
    if (!streams) scope.finish();
  }
}

function startingAfter(query: URLSearchParams): number {
  const given = query.get("starting_after");
  if (given === null) return -1;
  if (!/^\d{1,15}$/.test(given))
    throw new InvalidRequestError("starting_after must be the number of an event", { param: "starting_after" });
  return Number(given);
}

/** `DELETE /v1/responses/{id}`: work on it ends. Throws NotFoundError. */
export async function deleteResponse(id: string, tenant: string, context: ServerContext): Promise<Response> {
  const { history } = await find(context, tenant, id);
  if (!(await history.deleteResponse(tenant, id))) throw unknown(id);
  context.runs.get(id)?.abort(new ResponseCancelledError());
  return Response.json({ id, object: "response", deleted: true });
}

/** `GET /v1/responses/{id}/input_items`: its own, without those of the turns before. Throws GatewayErrors. */
export async function listInputItems(
  id: string,
  query: URLSearchParams,
  tenant: string,
  context: ServerContext,
): Promise<Response> {
  const page = pageRequest(query);
  const { history } = await find(context, tenant, id);
  const found = await history.listInputItems(tenant, id, page);
  if (found === null) throw unknown(id);
  return listResponse(found);
}

/**
 * `POST /v1/responses/{id}/cancel`: of one in the background, wherever it runs. What is over stays as it is. Waits for the end for some
 * seconds, and gives the response as it is then. Throws GatewayErrors.
 */
export async function cancelResponse(id: string, scope: RequestScope, context: ServerContext): Promise<Response> {
  const { tenant } = scope;
  const found = await find(context, tenant, id);
  if (!isInBackground(found.row))
    throw new PreconditionError("Only responses that were created with background can be cancelled");
  const { history } = found;
  const headers = idHeaders("openai", scope.id);
  if (isUnfinished(found.row.status)) {
    await cancelRun(id, tenant, new ResponseCancelledError(), history, context);
    const until = performance.now() + CANCEL_WAIT_MS;
    while (performance.now() < until && !scope.signal.aborted) {
      const state = await history.getState(tenant, id);
      if (state === null || state.updatedAt === null) break;
      await Bun.sleep(LOOK_MS);
    }
  }
  const { row } = await find(context, tenant, id);
  const response = shown(row);
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}
