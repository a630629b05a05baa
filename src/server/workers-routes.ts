import { Elysia, t } from "elysia";
import { workersErrorSchema } from "../apis/workers/errors.ts";
import { addWorker, getWorker, listWorkers, patchWorker, removeWorker, replaceWorker } from "../apis/workers/handle.ts";
import {
  acceptedSchema,
  anyObject,
  workerListSchema,
  workerObjectSchema,
  workerPatchDocument,
  workerSpecDocument,
} from "../apis/workers/schema.ts";
import type { ServerContext } from "./context.ts";
import { requestId } from "./request-id.ts";
import { type Begin, jsonBody, routeDetail, withinScope } from "./route-parts.ts";

const detail = routeDetail("Workers", workersErrorSchema);
const takes = (schema: object) => ({ requestBody: { content: { "application/json": { schema } } } });
const one = t.Object({ id: t.String() });

interface Answer {
  status?: number | string;
  readonly headers: Record<string, string | number>;
}

/** Routes by which workers are added, changed and removed, as SMG has them. */
export function workersRoutes(context: ServerContext, begin: Begin) {
  const within = withinScope(begin, "req");
  const parse = jsonBody(begin, "req", context, anyObject);
  /** An answer to what is under way. */
  const accepting = <T>(request: Request, set: Answer, work: () => Promise<T>): Promise<T> =>
    within(request, () => {
      set.status = 202;
      set.headers["x-request-id"] = requestId(request, context.config);
      return work();
    });

  return new Elysia({ name: "collie-workers", normalize: false })
    .get("/workers", ({ query, request }) => within(request, () => listWorkers(query["model"], context)), {
      query: t.Object({ model: t.Optional(t.String()) }),
      detail: detail("List workers", "All, or those that serve `model`.", workerListSchema),
    })
    .post(
      "/workers",
      async ({ body, request, set }) => {
        const told = await accepting(request, set, () => addWorker(body, context));
        set.headers["location"] = told.location;
        return told;
      },
      {
        parse,
        body: anyObject,
        detail: {
          ...detail(
            "Add a worker",
            "It is taken in when it answers: its object tells how that goes.",
            acceptedSchema,
            202,
          ),
          ...takes(workerSpecDocument),
        },
      },
    )
    .get("/workers/:id", ({ params, request }) => within(request, () => getWorker(params.id, context)), {
      params: one,
      detail: detail("One worker", "With `job_status` as long as something is being done with it.", workerObjectSchema),
    })
    .put(
      "/workers/:id",
      ({ body, params, request, set }) => accepting(request, set, () => replaceWorker(params.id, body, context)),
      {
        parse,
        body: anyObject,
        params: one,
        detail: {
          ...detail("Replace a worker", "It serves as it was until the new one is ready.", acceptedSchema, 202),
          ...takes(workerSpecDocument),
        },
      },
    )
    .patch(
      "/workers/:id",
      ({ body, params, request, set }) => accepting(request, set, () => patchWorker(params.id, body, context)),
      {
        parse,
        body: anyObject,
        params: one,
        detail: {
          ...detail("Change a worker", "Only priority, cost, labels, api_key and health.", acceptedSchema, 202),
          ...takes(workerPatchDocument),
        },
      },
    )
    .delete(
      "/workers/:id",
      ({ params, request, set }) => accepting(request, set, () => removeWorker(params.id, context)),
      {
        params: one,
        detail: detail("Remove a worker", "It gets nothing new, and leaves when it is done.", acceptedSchema, 202),
      },
    );
}
