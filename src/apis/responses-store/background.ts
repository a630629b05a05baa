/** Responses with `background`: told at once, worked on without the client. */
import { ClientClosedError, UnsupportedError } from "../../errors.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { inTurns } from "../../steps.ts";
import { idHeaders } from "../errors.ts";
import { prepareResponse, runResponse, withOtherModels } from "../responses/create.ts";
import { ResponseCancelledError } from "../responses/errors.ts";
import { responseObject } from "../responses/object.ts";
import type { ResponsesRequest } from "../responses/schema.ts";
import { stored } from "../responses/state.ts";
import { startRun } from "../shared/background.ts";
import { limitTotal } from "../shared/call.ts";
import { eventTexts } from "../shared/events.ts";
import { followResponse } from "./follow.ts";
import { LOST_RESPONSE } from "./logged.ts";

/**
 * Answers a validated request with `background`: by the queued response, or by its events as they come. Whoever has the answer finds the
 * response again. Throws GatewayErrors; finishes the scope.
 */
export async function handleBackground(
  request: ResponsesRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    const { history } = context;
    const { tenant } = scope;
    if (history === null)
      throw new UnsupportedError("background: this server keeps no responses", { param: "background" });
    const prepared = await prepareResponse(request, context, scope);
    if (scope.signal.aborted) throw new ClientClosedError();
    const { head, input } = prepared;
    const { id } = head;
    const queued = responseObject(head, { status: "queued", output: [] });
    await history.putResponse(await inTurns(stored({ request, object: queued, input }, tenant)));
    startRun(
      {
        id,
        tenant,
        route: scope.route,
        lost: LOST_RESPONSE,
        cancelled: () => new ResponseCancelledError(),
        // what comes when the result is stored is not logged: `followResponse` makes it of that
        work(own, log, end) {
          limitTotal(prepared.call.model, context, own);
          return runResponse(
            withOtherModels(prepared, context, own),
            eventTexts((json) => log.append(json)),
            context,
            own,
            {
              wasQueued: true,
              save: async (kept) => end(await inTurns(stored(kept, tenant))),
            },
          );
        },
      },
      history,
      context,
    );
    const headers = idHeaders("openai", scope.id);
    if (request.stream === true) return followResponse({ id, tenant, after: -1 }, history, context, scope, headers);
    scope.finish();
    return Response.json(queued, { headers });
  } catch (error) {
    scope.finish();
    throw error;
  }
}
