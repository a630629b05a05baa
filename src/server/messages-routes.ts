import type { TSchema } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { anthropicErrorResponse } from "../apis/anthropic/errors.ts";
import { handleCountTokens, handleMessages } from "../apis/messages/handle.ts";
import { countTokensRequest, countTokensResponse, messagesRequest, messagesResponse } from "../apis/messages/schema.ts";
import { withFallback } from "../apis/shared/fallback.ts";
import type { ServerContext } from "./context.ts";
import { messageBatchesRoutes } from "./message-batches-routes.ts";
import { type Begin, jsonBody, routeDetail } from "./route-parts.ts";

const detail = routeDetail("Anthropic", anthropicErrorResponse);

/** Routes of Anthropic's Messages. */
export function messagesRoutes(context: ServerContext, begin: Begin) {
  const parse = (schema: TSchema) => jsonBody(begin, "req", context, schema);
  return new Elysia({ name: "collie-messages", normalize: false })
    .use(messageBatchesRoutes(context, begin))
    .post(
      "/v1/messages",
      ({ body, request, server }) => {
        server?.timeout(request, 0); // a long prefill is silent
        return withFallback(
          { endpoint: "messages", model: body.model, isStream: body.stream === true },
          context,
          begin(request, "req"),
          (its, scope) => handleMessages(body, its, scope),
        );
      },
      {
        parse: parse(messagesRequest),
        body: messagesRequest,
        detail: detail(
          "Messages",
          "Anthropic's Messages with the sampling extensions of vLLM and SGLang. With `stream`, server-sent events.",
          messagesResponse,
        ),
      },
    )
    .post("/v1/messages/count_tokens", ({ body, request }) => handleCountTokens(body, context, begin(request, "req")), {
      parse: parse(countTokensRequest),
      body: countTokensRequest,
      detail: detail("Count tokens", "The tokens of the prompt that Messages would send.", countTokensResponse),
    });
}
