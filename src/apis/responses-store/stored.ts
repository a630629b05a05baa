/** Responses that were stored: to be read, listed, cancelled, deleted. */
import { InvalidRequestError, NotFoundError, PreconditionError } from "../../errors.ts";
import { memberText } from "../../history/json-text.ts";
import type { StoredResponse } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { idHeaders } from "../errors.ts";
import { ResponseCancelledError } from "../responses/errors.ts";
import { isUnfinished, shownStatus } from "../shared/history.ts";
import { jsonResponse, listResponse, pageRequest } from "../shared/paging.ts";
import { cancelFound, deleteRun, findRun, type RunKind } from "../shared/stored-runs.ts";
import { followResponse } from "./follow.ts";
import { LOST_RESPONSE } from "./logged.ts";

const RESPONSES: RunKind = {
  lost: LOST_RESPONSE,
  unknown: (id) => new NotFoundError(`Response with id '${id.slice(0, 100)}' not found.`),
  cancelled: () => new ResponseCancelledError(),
};

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
    const { history, row } = await findRun(RESPONSES, id, scope.tenant, context);
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
  await deleteRun(RESPONSES, id, tenant, context);
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
  const { history } = await findRun(RESPONSES, id, tenant, context);
  const found = await history.listInputItems(tenant, id, page);
  if (found === null) throw RESPONSES.unknown(id);
  return listResponse(found);
}

/**
 * `POST /v1/responses/{id}/cancel`: of one in the background, wherever it runs. What is over stays as it is. Waits for the end for some
 * seconds, and gives the response as it is then. Throws GatewayErrors.
 */
export async function cancelResponse(id: string, scope: RequestScope, context: ServerContext): Promise<Response> {
  const found = await findRun(RESPONSES, id, scope.tenant, context);
  if (!isInBackground(found.row))
    throw new PreconditionError("Only responses that were created with background can be cancelled");
  const response = shown(await cancelFound(RESPONSES, found, scope, context));
  for (const [name, value] of Object.entries(idHeaders("openai", scope.id))) response.headers.set(name, value);
  return response;
}
