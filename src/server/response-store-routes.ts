import type { TSchema } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { errorResponse, openAiError } from "../apis/openai/errors.ts";
import { responseObject } from "../apis/responses/schema.ts";
import { handleCompact } from "../apis/responses-store/compact.ts";
import { handleInputTokens } from "../apis/responses-store/count.ts";
import {
  compactRequest,
  compactResponse,
  countRequest,
  countResponse,
  deletedResponse,
  itemList,
} from "../apis/responses-store/schema.ts";
import { cancelResponse, deleteResponse, listInputItems, retrieveResponse } from "../apis/responses-store/stored.ts";
import { withFallback } from "../apis/shared/fallback.ts";
import { queryOf } from "../apis/shared/paging.ts";
import { UpgradeRequiredError } from "../errors.ts";
import type { ServerContext } from "./context.ts";
import { type Begin, jsonBody, routeDetail, withinScope } from "./route-parts.ts";

const detail = routeDetail("OpenAI", errorResponse);

/** Routes of responses that were stored, and of inputs that are not answered. */
export function responseStoreRoutes(context: ServerContext, begin: Begin) {
  const scopeOf = (request: Request) => begin(request, "req");
  const parse = (schema: TSchema) => jsonBody(begin, "req", context, schema);
  const during = withinScope(begin, "req");

  return new Elysia({ name: "collie-response-store", normalize: false })
    .get(
      "/v1/responses",
      () => Response.json(openAiError(new UpgradeRequiredError()), { status: 426, headers: { upgrade: "websocket" } }),
      { detail: { tags: ["OpenAI"], summary: "Responses over a WebSocket", description: "An upgrade is needed." } },
    )
    .post(
      "/v1/responses/input_tokens",
      ({ body, request, server }) => {
        server?.timeout(request, 0); // a long text is silent while it is tokenized
        return handleInputTokens(body, context, scopeOf(request));
      },
      {
        parse: parse(countRequest),
        body: countRequest,
        detail: detail(
          "Count input tokens",
          "The tokens of the prompt that a response would be made of.",
          countResponse,
        ),
      },
    )
    .post(
      "/v1/responses/compact",
      ({ body, request, server }) => {
        server?.timeout(request, 0); // the model writes a summary
        return withFallback(
          { endpoint: "responses", model: body.model, isStream: false },
          context,
          scopeOf(request),
          (its, scope) => handleCompact(body, its, scope),
        );
      },
      {
        parse: parse(compactRequest),
        body: compactRequest,
        detail: detail(
          "Compact a conversation",
          "The user's messages, and the model's summary of the conversation in a sealed item, to be sent instead of it.",
          compactResponse,
        ),
      },
    )
    .get(
      "/v1/responses/:id",
      ({ params, request, server }) => {
        server?.timeout(request, 0); // what runs in the background may be silent
        return retrieveResponse(params.id, queryOf(request.url), context, scopeOf(request));
      },
      {
        detail: detail(
          "Retrieve a response",
          "With `stream=true` the events of a response in the background: those behind `starting_after`, then the rest as it comes.",
          responseObject,
        ),
      },
    )
    .delete(
      "/v1/responses/:id",
      ({ params, request }) => during(request, ({ tenant }) => deleteResponse(params.id, tenant, context)),
      { detail: detail("Delete a response", "Work on it in the background ends.", deletedResponse) },
    )
    .post(
      "/v1/responses/:id/cancel",
      ({ params, request }) => during(request, (scope) => cancelResponse(params.id, scope, context)),
      {
        parse: "none",
        detail: detail(
          "Cancel a response",
          "One in the background. What is over stays as it is. A stream of its events ends without one of its own for this.",
          responseObject,
        ),
      },
    )
    .get(
      "/v1/responses/:id/input_items",
      ({ params, request }) =>
        during(request, ({ tenant }) => listInputItems(params.id, queryOf(request.url), tenant, context)),
      {
        detail: detail(
          "List input items",
          "Those of this response alone, the newest first unless `order` is asc; `after`, `before` and `limit` choose among them.",
          itemList,
        ),
      },
    );
}
