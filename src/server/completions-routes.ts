import { Elysia } from "elysia";
import { handleCompletions } from "../apis/completions/handle.ts";
import { completionRequest, completionResponse } from "../apis/completions/schema.ts";
import { handleGenerate } from "../apis/generate/handle.ts";
import { generateRequest, generateResponse } from "../apis/generate/schema.ts";
import { errorResponse } from "../apis/openai/errors.ts";
import { withFallback } from "../apis/shared/fallback.ts";
import type { ServerContext } from "./context.ts";
import { eitherWay } from "./either-way.ts";
import { type Begin, bodyDetail, jsonBody, routeDetail } from "./route-parts.ts";

const openAi = routeDetail("OpenAI", errorResponse);
const sglang = routeDetail("SGLang", errorResponse);

/** Routes of the older way to ask for text: a prompt that is no conversation. */
export function completionsRoutes(context: ServerContext, begin: Begin) {
  const completions = eitherWay(
    { kind: "cmpl", endpoint: "/v1/completions", schema: completionRequest, handle: handleCompletions },
    context,
    begin,
  );
  return new Elysia({ name: "collie-completions", normalize: false })
    .post(
      "/v1/completions",
      ({ body, request, server }) => {
        server?.timeout(request, 0); // a long prefill is silent
        return completions.answer(body, request);
      },
      {
        parse: completions.parse,
        detail: {
          ...openAi(
            "Completions",
            "OpenAI's Completions with the sampling extensions of vLLM. With `stream`, server-sent events.",
            completionResponse,
          ),
          ...bodyDetail(completionRequest),
        },
      },
    )
    .post(
      "/generate",
      ({ body, request, server }) => {
        server?.timeout(request, 0);
        return withFallback(
          { endpoint: "generate", model: body.model ?? "", isStream: body.stream === true },
          context,
          begin(request, "gnt"),
          (its, scope) => handleGenerate(body, its, scope),
        );
      },
      {
        parse: jsonBody(begin, "gnt", context, generateRequest),
        body: generateRequest,
        detail: sglang(
          "Generate",
          "SGLang's native form. With `stream`, server-sent events, each with the whole text so far.",
          generateResponse,
        ),
      },
    );
}
