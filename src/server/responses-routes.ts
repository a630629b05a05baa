import { Elysia } from "elysia";
import { errorResponse } from "../apis/openai/errors.ts";
import { handleResponses } from "../apis/responses/create.ts";
import { responseObject, responsesRequest } from "../apis/responses/schema.ts";
import { handleBackground } from "../apis/responses-store/background.ts";
import { readJson } from "./body.ts";
import type { ServerContext } from "./context.ts";
import type { RequestScope } from "./request-scope.ts";
import { responseStoreRoutes } from "./response-store-routes.ts";

const json = (description: string, schema: object) => ({ description, content: { "application/json": { schema } } });

/**
 * Routes of OpenAI's Responses. `begin` gives the scope of a request, whose id begins with `kind`, and finishes it
 * if the request fails before it is handled.
 */
export function responsesRoutes(context: ServerContext, begin: (request: Request, kind: string) => RequestScope) {
  return new Elysia({ name: "collie-responses", normalize: false }).use(responseStoreRoutes(context, begin)).post(
    "/v1/responses",
    // `async` tells Elysia, which reads the source, that it may reject
    async ({ body, request, server }) => {
      server?.timeout(request, 0); // a long prefill is silent
      const scope = begin(request, "req");
      return body.background === true ? handleBackground(body, context, scope) : handleResponses(body, context, scope);
    },
    {
      parse: ({ request }) => {
        begin(request, "req");
        return readJson(request, context.config.maxPayloadSize);
      },
      body: responsesRequest,
      detail: {
        tags: ["OpenAI"],
        summary: "Responses",
        description:
          "OpenAI's Responses with the sampling extensions of vLLM and SGLang. With `stream`, server-sent events: each item with its whole life, numbered, and `[DONE]` at the end. With `background` the answer comes at once and the work goes on without its client. Tools that would run on OpenAI's servers are left out.",
        responses: {
          200: json("The answer", responseObject),
          "4XX": json("The request is wrong", errorResponse),
          "5XX": json("It could not be served", errorResponse),
        },
      },
    },
  );
}
