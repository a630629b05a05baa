import { Elysia, t } from "elysia";
import { googleErrorResponse } from "../apis/google/errors.ts";
import { bareName } from "../apis/interactions/ask.ts";
import { handleBackground } from "../apis/interactions/background.ts";
import { handleInteractions } from "../apis/interactions/create.ts";
import { googleModel, googleModelPage } from "../apis/interactions/models.ts";
import { interactionObject, interactionsRequest } from "../apis/interactions/schema.ts";
import { cancelInteraction, deleteInteraction, getInteraction } from "../apis/interactions/stored.ts";
import { withFallback } from "../apis/shared/fallback.ts";
import { queryOf } from "../apis/shared/paging.ts";
import { ModelNotFoundError } from "../errors.ts";
import type { ServerContext } from "./context.ts";
import { type Begin, decodedParam, jsonBody, routeDetail, withinScope } from "./route-parts.ts";

const detail = routeDetail("Google", googleErrorResponse);

/** Routes of Google's Interactions, and of models as Google's API lists them. */
export function interactionsRoutes(context: ServerContext, begin: Begin) {
  const routes = new Elysia({ name: "collie-interactions", normalize: false });
  for (const version of ["v1", "v1beta", "v1alpha"]) addInteractions(routes, version, context, begin);
  for (const version of ["v1beta", "v1alpha"]) addModels(routes, version, context);
  return routes;
}

function addInteractions(routes: Elysia, version: string, context: ServerContext, begin: Begin): void {
  const path = `/${version}/interactions`;
  const scopeOf = (request: Request) => begin(request, "req");
  const during = withinScope(begin, "req");

  routes
    .post(
      path,
      // `async` tells Elysia, which reads the source, that it may reject
      async ({ body, request, server }) => {
        server?.timeout(request, 0); // a long prefill is silent
        return withFallback(
          { endpoint: "interactions", model: bareName(body.model ?? ""), isStream: body.stream === true },
          context,
          scopeOf(request),
          (its, scope) =>
            body.background === true ? handleBackground(body, its, scope) : handleInteractions(body, path, its, scope),
        );
      },
      {
        parse: jsonBody(begin, "req", context, interactionsRequest),
        body: interactionsRequest,
        detail: detail(
          "Interactions",
          "Google's Interactions in their `steps` schema, with the sampling extensions of vLLM and SGLang in `generation_config` or beside it. With `stream`, server-sent events with `[DONE]` at the end; with `background` the answer comes at once and the work goes on without its client.",
          interactionObject,
        ),
      },
    )
    .get(
      `${path}/:id`,
      ({ params, request, server }) => {
        server?.timeout(request, 0); // what runs in the background may be silent
        return getInteraction(params.id, queryOf(request.url), context, scopeOf(request));
      },
      {
        detail: detail(
          "Get an interaction",
          "With `include_input=true` also the steps of its request. With `stream=true` its events: those behind `last_event_id`, then the rest as it comes.",
          interactionObject,
        ),
      },
    )
    .delete(
      `${path}/:id`,
      ({ params, request }) => during(request, ({ tenant }) => deleteInteraction(params.id, tenant, context)),
      { detail: detail("Delete an interaction", "Work on it in the background ends.", t.Object({})) },
    )
    .post(
      `${path}/:id/cancel`,
      ({ params, request }) => during(request, (scope) => cancelInteraction(params.id, scope, context)),
      {
        parse: "none",
        detail: detail(
          "Cancel an interaction",
          "One in the background. What is over stays as it is.",
          interactionObject,
        ),
      },
    );
}

function addModels(routes: Elysia, version: string, { fleet }: Pick<ServerContext, "fleet">): void {
  const path = `/${version}/models`;
  routes
    .get(path, ({ request }) => googleModelPage(fleet.listAll(), request.url), {
      detail: detail("List models", "In Google's shape; `pageSize` and `pageToken` choose a page.", t.Object({})),
    })
    .get(
      `${path}/*`,
      ({ params }) => {
        const name = decodedParam(params["*"], (text) => new ModelNotFoundError(text));
        const entry = fleet.entry(name);
        return googleModel(entry, name);
      },
      {
        params: t.Object({ "*": t.String() }),
        detail: detail("One model", "In Google's shape; its id may hold slashes.", t.Object({})),
      },
    );
}
