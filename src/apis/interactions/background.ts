/** Interactions with `background`: told at once, worked on without the client. */
import { ClientClosedError, UnsupportedError } from "../../errors.ts";
import type { NewResponse } from "../../history/store.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { idHeaders } from "../errors.ts";
import { startRun } from "../shared/background.ts";
import { limitTotal, prepareCall } from "../shared/call.ts";
import type { EventLog } from "../shared/event-log.ts";
import { eventTexts } from "../shared/events.ts";
import { callWithFallback } from "../shared/fallback.ts";
import { jsonResponse } from "../shared/paging.ts";
import { writerSink } from "../shared/turn-writer.ts";
import { bareName, modelName } from "./ask.ts";
import { interactionWriter, type PreparedInteraction, prepareInteraction } from "./create.ts";
import { InteractionCancelledError } from "./errors.ts";
import { followInteraction } from "./follow.ts";
import { LOST_INTERACTION } from "./logged.ts";
import { interactionText } from "./object.ts";
import type { InteractionsRequest } from "./schema.ts";
import { interactionRow } from "./state.ts";

/**
 * Answers a validated request with `background`: by the interaction that has just begun, or by its events as they come. Whoever has the
 * answer finds the interaction again. Throws GatewayErrors; finishes the scope.
 */
export async function handleBackground(
  body: InteractionsRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    const { history } = context;
    const { tenant } = scope;
    if (history === null)
      throw new UnsupportedError("background: this server keeps no interactions", { param: "background" });
    const prepared = await prepareInteraction(body, context, scope);
    if (scope.signal.aborted) throw new ClientClosedError();
    const { head, input, previousId } = prepared;
    const { id } = head;
    const begun = interactionText(head, { status: "in_progress", updatedAt: head.createdAt, steps: [] });
    await history.putResponse(
      interactionRow({ head, previousId, input, status: "queued", body: begun, steps: [] }, tenant),
    );
    startRun(
      {
        id,
        tenant,
        route: scope.route,
        lost: LOST_INTERACTION,
        cancelled: () => new InteractionCancelledError(),
        work: (own, log, end) => run(prepared, log, end, context, own),
      },
      history,
      context,
    );
    const headers = idHeaders("google", scope.id);
    if (body.stream === true) return followInteraction({ id, tenant, after: -1 }, history, context, scope, headers);
    scope.finish();
    return jsonResponse(begun, headers);
  } catch (error) {
    scope.finish();
    throw error;
  }
}

async function run(
  asked: PreparedInteraction,
  log: EventLog,
  end: (row: NewResponse) => Promise<void>,
  context: ServerContext,
  scope: RequestScope,
): Promise<void> {
  limitTotal(asked.call.model, context, scope);
  // what comes when the result is stored is not logged: `followInteraction` makes it of that
  const out = eventTexts((json) => log.append(json));
  const { ask, head } = asked;
  const prepare = (its: ServerContext) => prepareCall({ ...ask, model: modelName(head.model, its.fleet) }, its, scope);
  const prepared = { ...asked, call: callWithFallback(asked.call, bareName(head.model), context, prepare) };
  const writer = interactionWriter(prepared, out, context, scope, (kept) => end(interactionRow(kept, scope.tenant)));
  writer.begun();
  await prepared.call.run(writerSink(writer, prepared.call), scope.signal).done;
  await writer.settled;
}
