import { Elysia, t } from "elysia";
import { pageQuery } from "../apis/anthropic/page.ts";
import { errorFamily } from "../apis/errors.ts";
import { googleModel, googleModelPage } from "../apis/interactions/models.ts";
import { modelInfo, modelInfoList } from "../apis/models/anthropic.ts";
import { modelList, modelObject } from "../apis/models/objects.ts";
import { ModelNotFoundError } from "../errors.ts";
import type { ServerContext } from "./context.ts";
import { decodedParam } from "./route-parts.ts";

const familyOf = ({ headers }: Request) => errorFamily("/v1/models", headers);
const SHAPES =
  "In Anthropic's shape if the request has the header anthropic-version, in Google's if it has x-goog-api-client, else in OpenAI's.";

/** Routes that tell which models there are. */
export function modelsRoutes({ fleet }: Pick<ServerContext, "fleet">) {
  return new Elysia({ name: "collie-models", normalize: false })
    .get(
      "/v1/models",
      ({ request }) => {
        const models = fleet.listAll();
        const family = familyOf(request);
        if (family === "google") return googleModelPage(models, request.url);
        return family === "anthropic" ? modelInfoList(models, pageQuery(request.url)) : modelList(models);
      },
      { detail: { tags: ["OpenAI"], summary: "List models", description: SHAPES } },
    )
    .get(
      "/v1/models/*",
      ({ params, request }) => {
        const name = decodedParam(params["*"], (text) => new ModelNotFoundError(text));
        const entry = fleet.entry(name);
        const family = familyOf(request);
        if (family === "google") return googleModel(entry, name);
        return family === "anthropic" ? modelInfo(entry, name) : modelObject(entry, name);
      },
      {
        params: t.Object({ "*": t.String() }),
        detail: { tags: ["OpenAI"], summary: "One model; its id may hold slashes", description: SHAPES },
      },
    );
}
