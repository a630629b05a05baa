/** Interactions that were stored: to be read, streamed again, cancelled, deleted. */
import { InvalidRequestError, NotFoundError } from "../../errors.ts";
import type { StoredResponse } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { idHeaders } from "../errors.ts";
import { isUnfinished } from "../shared/history.ts";
import { jsonResponse } from "../shared/paging.ts";
import { cancelFound, deleteRun, findRun, type RunKind } from "../shared/stored-runs.ts";
import { InteractionCancelledError } from "./errors.ts";
import { type Position, positionOf } from "./events.ts";
import { followInteraction, replayedFrames } from "./follow.ts";
import { LOST_INTERACTION } from "./logged.ts";

const INTERACTIONS: RunKind = {
  lost: LOST_INTERACTION,
  unknown: (id) => new NotFoundError(`Interaction '${id.slice(0, 100)}' not found.`),
  cancelled: () => new InteractionCancelledError(),
};

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
    const { history, row } = await findRun(INTERACTIONS, id, tenant, context);
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
  await deleteRun(INTERACTIONS, id, tenant, context);
  return jsonResponse("{}");
}

/**
 * `POST /v1beta/interactions/{id}/cancel`: of one in the background, wherever it runs. What is over stays as it is. Waits for the end for
 * some seconds, and gives the interaction as it is then. Throws GatewayErrors.
 */
export async function cancelInteraction(id: string, scope: RequestScope, context: ServerContext): Promise<Response> {
  const found = await findRun(INTERACTIONS, id, scope.tenant, context);
  const { body } = await cancelFound(INTERACTIONS, found, scope, context);
  return jsonResponse(body, idHeaders("google", scope.id));
}
