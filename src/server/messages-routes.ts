import { Elysia } from "elysia";
import { anthropicErrorResponse } from "../apis/anthropic/errors.ts";
import { handleCountTokens, handleMessages } from "../apis/messages/handle.ts";
import { countTokensRequest, countTokensResponse, messagesRequest, messagesResponse } from "../apis/messages/schema.ts";
import { readJson } from "./body.ts";
import type { ServerContext } from "./context.ts";
import { messageBatchesRoutes } from "./message-batches-routes.ts";
import type { RequestScope } from "./request-scope.ts";

const json = (description: string, schema: object) => ({ description, content: { "application/json": { schema } } });
const detail = (summary: string, description: string, answer: object) => ({
  tags: ["Anthropic"],
  summary,
  description,
  responses: {
    200: json("The answer", answer),
    "4XX": json("The request is wrong", anthropicErrorResponse),
    "5XX": json("It could not be served", anthropicErrorResponse),
  },
});

/**
 * Routes of Anthropic's Messages. `begin` gives the scope of a request, whose id begins with `kind`, and finishes it
 * if the request fails before it is handled.
 */
export function messagesRoutes(context: ServerContext, begin: (request: Request, kind: string) => RequestScope) {
  const parse = ({ request }: { request: Request }) => {
    begin(request, "req");
    return readJson(request, context.config.maxPayloadSize);
  };
  return new Elysia({ name: "collie-messages", normalize: false })
    .use(messageBatchesRoutes(context, begin))
    .post(
      "/v1/messages",
      ({ body, request, server }) => {
        server?.timeout(request, 0); // a long prefill is silent
        return handleMessages(body, context, begin(request, "req"));
      },
      {
        parse,
        body: messagesRequest,
        detail: detail(
          "Messages",
          "Anthropic's Messages with the sampling extensions of vLLM and SGLang. With `stream`, server-sent events.",
          messagesResponse,
        ),
      },
    )
    .post("/v1/messages/count_tokens", ({ body, request }) => handleCountTokens(body, context, begin(request, "req")), {
      parse,
      body: countTokensRequest,
      detail: detail("Count tokens", "The tokens of the prompt that Messages would send.", countTokensResponse),
    });
}
