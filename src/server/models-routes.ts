import { Elysia, t } from "elysia";
import { pageQuery } from "../apis/anthropic/page.ts";
import { errorFamily } from "../apis/errors.ts";
import { modelInfo, modelInfoList } from "../apis/models/anthropic.ts";
import { modelList, modelObject } from "../apis/models/objects.ts";
import { ModelNotFoundError } from "../errors.ts";
import type { ServerContext } from "./context.ts";
import { decodedParam } from "./route-parts.ts";

const isAnthropic = ({ headers }: Request): boolean => errorFamily("/v1/models", headers) === "anthropic";
const SHAPES = "In Anthropic's shape if the request has the header anthropic-version, else in OpenAI's.";

/** Routes that tell which models there are. */
export function modelsRoutes({ fleet }: Pick<ServerContext, "fleet">) {
  return new Elysia({ name: "collie-models", normalize: false })
    .get(
      "/v1/models",
      ({ request }) =>
        isAnthropic(request) ? modelInfoList(fleet.list(), pageQuery(request.url)) : modelList(fleet.list()),
      { detail: { tags: ["OpenAI"], summary: "List models", description: SHAPES } },
    )
    .get(
      "/v1/models/*",
      ({ params, request }) => {
        const name = decodedParam(params["*"], (text) => new ModelNotFoundError(text));
        const { entry } = fleet.model(name);
        return isAnthropic(request) ? modelInfo(entry, name) : modelObject(entry, name);
      },
      {
        params: t.Object({ "*": t.String() }),
        detail: { tags: ["OpenAI"], summary: "One model; its id may hold slashes", description: SHAPES },
      },
    );
}
