/** One request of a batch. */
import { setTimeout as pause } from "node:timers/promises";
import { GatewayError, gatewayError, InternalError, InvalidRequestError, ShuttingDownError } from "../../errors.ts";
import { rawMemberText } from "../../generation/raw-members.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { invalidBody, type SchemaProblem } from "../../server/validation.ts";
import { anthropicError } from "../anthropic/errors.ts";
import { createMessage } from "../messages/handle.ts";
import { type MessagesRequest, messagesRequest } from "../messages/schema.ts";
import { compiledSchema } from "../shared/compiled-schema.ts";
import { withFallback } from "../shared/fallback.ts";
import { routeHints } from "../shared/route-hints.ts";

/** What a request came to. */
export type ItemResult = "succeeded" | "errored" | "canceled" | "expired";

/** A batch has time: what is only busy is asked again, with growing pauses, and not before it says, within reason. */
const ATTEMPTS = 6;
const FIRST_PAUSE_MS = 500;
const LONGEST_WAIT_SECS = 60;

const schema = compiledSchema(messagesRequest);

/**
 * JSON text of what a request came to, `{"type": "succeeded", "message": …}` or `{"type": "errored", "error": …}`. `json`: the request as the
 * client wrote it. Rejects with the reason of `signal`, and with ShuttingDownError.
 */
export async function itemResult(
  json: string,
  tenant: string,
  context: ServerContext,
  signal: AbortSignal,
): Promise<{ readonly type: ItemResult; readonly json: string }> {
  const scope = context.scopes.begin(`req-${crypto.randomUUID().replaceAll("-", "")}`, signal, tenant);
  try {
    const message = await answered(json, context, scope);
    return { type: "succeeded", json: `{"type":"succeeded","message":${message}}` };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const failure = gatewayError(error);
    if (failure instanceof ShuttingDownError) throw failure;
    if (failure instanceof InternalError)
      context.log.error("a request of a batch failed", { request: scope.id, error });
    return { type: "errored", json: JSON.stringify({ type: "errored", error: anthropicError(failure, scope.id) }) };
  } finally {
    scope.finish();
  }
}

async function answered(json: string, context: ServerContext, scope: RequestScope): Promise<string> {
  const raw = rawMemberText(json, "params") ?? "{}";
  const params = JSON.parse(raw) as MessagesRequest;
  if (!schema.Check(params)) throw invalidBody(schema.Errors(params) as unknown as Iterable<SchemaProblem>);
  if (params.stream === true)
    throw new InvalidRequestError("A request of a batch cannot be streamed", { param: "stream" });
  scope.route = { hints: routeHints(undefined, params) };
  for (let attempt = 1; ; attempt++) {
    try {
      return await withFallback(
        { endpoint: "messages", model: params.model, isStream: false },
        context,
        scope,
        (its, part) => createMessage(params, raw, its, part),
      );
    } catch (error) {
      const asked = error instanceof GatewayError ? error.retryAfterSecs : undefined;
      if (asked === undefined || error instanceof ShuttingDownError || scope.signal.aborted || attempt === ATTEMPTS)
        throw error;
      const ms = Math.max(FIRST_PAUSE_MS * 2 ** (attempt - 1), Math.min(asked, LONGEST_WAIT_SECS) * 1000);
      await pause(ms, undefined, { signal: scope.signal }).catch(() => {});
    }
  }
}
