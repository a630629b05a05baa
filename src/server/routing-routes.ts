import { Elysia, t } from "elysia";
import { explainRoute } from "../apis/routing/handle.ts";
import { explainRequest, reportSchema } from "../apis/routing/schema.ts";
import { routeHints } from "../apis/shared/route-hints.ts";
import { workersErrorSchema } from "../apis/workers/errors.ts";
import type { ServerContext } from "./context.ts";
import { type Begin, bodyDetail, jsonBody, routeDetail, withinScope } from "./route-parts.ts";

const detail = routeDetail("Workers", workersErrorSchema);
const ABOUT =
  "Who could take the request, what each of them has cached of its prompt and has to do, and whom the policy chooses. Nothing is sent, and nothing changes by it.";

/** Routes that tell of the choice of workers. */
export function routingRoutes(context: ServerContext, begin: Begin) {
  const within = withinScope(begin, "req");
  return new Elysia({ name: "collie-routing", normalize: false })
    .get(
      "/routing/explain",
      ({ query, request }) =>
        within(request, (scope) => {
          scope.route = { hints: routeHints(request.headers, {}) };
          return explainRoute(query, context, scope);
        }),
      {
        query: t.Object({ model: t.Optional(t.String()), prompt: t.String() }),
        detail: detail("Where a prompt would go", ABOUT, reportSchema),
      },
    )
    .post("/routing/explain", ({ body, request }) => within(request, (scope) => explainRoute(body, context, scope)), {
      parse: jsonBody(begin, "req", context, explainRequest),
      body: explainRequest,
      detail: { ...detail("Where a request would go", ABOUT, reportSchema), ...bodyDetail(explainRequest) },
    });
}
