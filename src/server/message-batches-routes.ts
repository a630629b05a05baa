import { Elysia } from "elysia";
import { anthropicErrorResponse } from "../apis/anthropic/errors.ts";
import { pageQuery } from "../apis/anthropic/page.ts";
import { idHeaders } from "../apis/errors.ts";
import {
  type BatchAsk,
  batchResults,
  cancelBatch,
  createBatch,
  deleteBatch,
  getBatch,
  listBatches,
} from "../apis/message-batches/handle.ts";
import { batchRequest, batchResponse } from "../apis/message-batches/schema.ts";
import type { ServerContext } from "./context.ts";
import { type Begin, jsonBody, routeDetail, withinScope } from "./route-parts.ts";

const detail = routeDetail("Anthropic", anthropicErrorResponse);

/** The server's address as the client knows it; a proxy that ends TLS says so. */
function originOf(request: Request): string {
  const { protocol, host } = new URL(request.url);
  const forwarded = request.headers.get("x-forwarded-proto");
  return `${forwarded === "https" ? "https:" : protocol}//${host}`;
}

/** Routes of batches of Messages. */
export function messageBatchesRoutes(context: ServerContext, begin: Begin) {
  const scopeOf = (request: Request) => begin(request, "req");
  const within = withinScope(begin, "req");
  const during = <T>(request: Request, id: string, work: (ask: BatchAsk) => Promise<T>): Promise<T> =>
    within(request, ({ tenant }) => work({ id, tenant, origin: originOf(request) }));
  return new Elysia({ name: "collie-message-batches", normalize: false })
    .post(
      "/v1/messages/batches",
      ({ body, request }) => createBatch(body, originOf(request), context, scopeOf(request)),
      {
        parse: jsonBody(begin, "req", context, batchRequest),
        body: batchRequest,
        detail: detail(
          "Create a message batch",
          "Requests of Messages that are answered one after the other, within 24 hours.",
          batchResponse,
        ),
      },
    )
    .get(
      "/v1/messages/batches",
      ({ request }) => during(request, "", (ask) => listBatches(ask, pageQuery(request.url), context)),
      { detail: detail("List message batches", "The newest first.", { type: "object" }) },
    )
    .get(
      "/v1/messages/batches/:id",
      ({ params, request }) => during(request, params.id, (ask) => getBatch(ask, context)),
      { detail: detail("Retrieve a message batch", "How far it is.", batchResponse) },
    )
    .delete(
      "/v1/messages/batches/:id",
      ({ params, request }) => during(request, params.id, (ask) => deleteBatch(ask, context)),
      { detail: detail("Delete a message batch", "Only one that has ended.", { type: "object" }) },
    )
    .post(
      "/v1/messages/batches/:id/cancel",
      async ({ params, request }) => {
        const headers = idHeaders("anthropic", scopeOf(request).id);
        return Response.json(await during(request, params.id, (ask) => cancelBatch(ask, context)), { headers });
      },
      {
        parse: "none",
        detail: detail("Cancel a message batch", "What has no answer yet gets none.", batchResponse),
      },
    )
    .get(
      "/v1/messages/batches/:id/results",
      ({ params, request }) => during(request, params.id, (ask) => batchResults(ask, context)),
      {
        detail: detail("Results of a message batch", "JSON lines, in the order in which they came.", {
          type: "string",
        }),
      },
    );
}
