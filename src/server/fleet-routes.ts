import { Elysia, t } from "elysia";
import { handleCompletions } from "../apis/completions/handle.ts";
import { completionRequest } from "../apis/completions/schema.ts";
import { workersErrorSchema } from "../apis/workers/errors.ts";
import { type Drawn, flushCache, getLoads, startProfile, stopProfile } from "../apis/workers/fleet.ts";
import {
  flushSchema,
  loadsSchema,
  profiledSchema,
  startProfileRequest,
  stopProfileRequest,
} from "../apis/workers/schema.ts";
import { NoWorkersError } from "../errors.ts";
import { METRICS_TYPE } from "../telemetry/metrics.ts";
import type { ServerContext } from "./context.ts";
import { eitherWay } from "./either-way.ts";
import { requestId } from "./request-id.ts";
import { type Begin, jsonBody, patient, routeDetail, type Timeouts, withinScope } from "./route-parts.ts";

const detail = routeDetail("Workers", workersErrorSchema);
const FIRST = "Of the first worker that serves the model named, or any.";
const ofModel = t.Object({ model: t.Optional(t.String()) });
/** The least that an engine can be asked for. */
const TRY = { prompt: "Hello", max_tokens: 1, temperature: 0 };
const PARTLY = "The status is 206 if a worker failed.";

/** Routes that ask something of all workers, as SMG has them. */
export function fleetRoutes(context: ServerContext, begin: Begin) {
  const within = withinScope(begin, "req");
  const draw = (request: Request, server: Timeouts | null, work: () => Promise<Drawn>): Promise<Response> => {
    patient(request, server); // a worker may take its time
    return within(request, async () => {
      const { status, body } = await work();
      return Response.json(body, { status, headers: { "x-request-id": requestId(request, context.config) } });
    });
  };

  const told = (request: Request, of: "model" | "server", model: string | undefined) =>
    within(request, () => context.control.admin.told(of, model));
  const completions = eitherWay(
    { kind: "hlt", endpoint: "/v1/completions", schema: completionRequest, handle: handleCompletions },
    context,
    begin,
  );

  return new Elysia({ name: "collie-fleet", normalize: false })
    .get("/get_loads", ({ request }) => within(request, () => getLoads(context)), {
      detail: detail("Loads of the workers", "As the engines tell them now.", loadsSchema),
    })
    .get(
      "/engine_metrics",
      ({ request, server }) => {
        patient(request, server);
        return within(request, async () => {
          const headers = { "content-type": METRICS_TYPE, "x-request-id": requestId(request, context.config) };
          return new Response(await context.control.admin.engineMetrics(), { headers });
        });
      },
      { detail: detail("Metrics of all engines", "Prometheus' text format, with the label worker_addr.", t.String()) },
    )
    .get("/get_model_info", ({ query, request }) => told(request, "model", query["model"]), {
      query: ofModel,
      detail: detail("What an engine tells of its model", FIRST, t.Object({})),
    })
    .get("/get_server_info", ({ query, request }) => told(request, "server", query["model"]), {
      query: ofModel,
      detail: detail("What an engine tells of itself", FIRST, t.Object({})),
    })
    .get(
      "/health_generate",
      async ({ query, request, server }) => {
        patient(request, server);
        const model = query["model"] ?? context.fleet.listAll()[0]?.id;
        if (model === undefined) throw new NoWorkersError(model);
        const answer = await completions.answer({ ...TRY, model }, request);
        await answer.arrayBuffer();
        return new Response(null, { status: answer.status });
      },
      {
        query: ofModel,
        detail: detail("A worker generates a token", "Of the model named, else of the first one.", t.String()),
      },
    )
    .post(
      "/flush_cache",
      ({ query, request, server }) => draw(request, server, () => flushCache(query["timeout"], context)),
      {
        query: t.Object({
          timeout: t.Optional(t.String({ description: "Seconds that a worker may wait to be idle" })),
        }),
        detail: detail("Empty the prefix caches of all workers", PARTLY, flushSchema),
      },
    )
    .post("/start_profile", ({ body, request, server }) => draw(request, server, () => startProfile(body, context)), {
      parse: jsonBody(begin, "req", context, startProfileRequest, true),
      body: startProfileRequest,
      detail: detail("Start the profiler of a worker, or of all", PARTLY, profiledSchema),
    })
    .post("/stop_profile", ({ body, request, server }) => draw(request, server, () => stopProfile(body, context)), {
      parse: jsonBody(begin, "req", context, stopProfileRequest, true),
      body: stopProfileRequest,
      detail: detail("Stop it", PARTLY, profiledSchema),
    });
}
