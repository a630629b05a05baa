import { Elysia, t } from "elysia";
import { modelList, modelObject } from "../apis/models/objects.ts";
import { ModelNotFoundError } from "../errors.ts";
import type { ServerContext } from "./context.ts";

/** Routes that tell which models there are. */
export function modelsRoutes({ fleet }: Pick<ServerContext, "fleet">) {
  return new Elysia({ name: "collie-models", normalize: false })
    .get("/v1/models", () => modelList(fleet.list()), { detail: { tags: ["OpenAI"], summary: "List models" } })
    .get(
      "/v1/models/*",
      ({ params }) => {
        const name = decoded(params["*"]);
        const { entry } = fleet.model(name);
        return modelObject(entry, name);
      },
      {
        params: t.Object({ "*": t.String() }),
        detail: { tags: ["OpenAI"], summary: "One model; its id may hold slashes" },
      },
    );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ModelNotFoundError(text);
  }
}
