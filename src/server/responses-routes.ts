import { Elysia } from "elysia";
import { errorResponse } from "../apis/openai/errors.ts";
import { handleResponses } from "../apis/responses/create.ts";
import { responseObject, responsesRequest } from "../apis/responses/schema.ts";
import { handleBackground } from "../apis/responses-store/background.ts";
import { withFallback } from "../apis/shared/fallback.ts";
import type { ServerContext } from "./context.ts";
import { responseStoreRoutes } from "./response-store-routes.ts";
import { type Begin, jsonBody, routeDetail } from "./route-parts.ts";

const detail = routeDetail("OpenAI", errorResponse);

/** Routes of OpenAI's Responses. */
export function responsesRoutes(context: ServerContext, begin: Begin) {
  return new Elysia({ name: "collie-responses", normalize: false }).use(responseStoreRoutes(context, begin)).post(
    "/v1/responses",
    // `async` tells Elysia, which reads the source, that it may reject
    async ({ body, request, server }) => {
      server?.timeout(request, 0); // a long prefill is silent
      const handle = body.background === true ? handleBackground : handleResponses;
      return withFallback(
        { endpoint: "responses", model: body.model, isStream: body.stream === true },
        context,
        begin(request, "req"),
        (its, scope) => handle(body, its, scope),
      );
    },
    {
      parse: jsonBody(begin, "req", context, responsesRequest),
      body: responsesRequest,
      detail: detail(
        "Responses",
        "OpenAI's Responses with the sampling extensions of vLLM and SGLang. With `stream`, server-sent events: each item with its whole life, numbered, and `[DONE]` at the end. With `background` the answer comes at once and the work goes on without its client. Tools that would run on OpenAI's servers are left out.",
        responseObject,
      ),
    },
  );
}
