import { Elysia, t } from "elysia";
import { errorResponse } from "../apis/openai/errors.ts";
import { type Drawn, flushCache, getLoads, startProfile, stopProfile } from "../apis/workers/fleet.ts";
import {
  flushSchema,
  loadsSchema,
  profiledSchema,
  startProfileRequest,
  stopProfileRequest,
} from "../apis/workers/schema.ts";
import type { ServerContext } from "./context.ts";
import { requestId } from "./request-id.ts";
import { type Begin, jsonBody, patient, routeDetail, type Timeouts, withinScope } from "./route-parts.ts";

const detail = routeDetail("Workers", errorResponse);
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

  return new Elysia({ name: "collie-fleet", normalize: false })
    .get("/get_loads", ({ request }) => within(request, () => getLoads(context)), {
      detail: detail("Loads of the workers", "As the engines tell them now.", loadsSchema),
    })
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
