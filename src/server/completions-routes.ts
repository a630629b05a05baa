import type { TSchema } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { handleCompletions } from "../apis/completions/handle.ts";
import { completionRequest, completionResponse } from "../apis/completions/schema.ts";
import { handleGenerate } from "../apis/generate/handle.ts";
import { generateRequest, generateResponse } from "../apis/generate/schema.ts";
import { errorResponse } from "../apis/openai/errors.ts";
import type { ServerContext } from "./context.ts";
import { type Begin, jsonBody, routeDetail } from "./route-parts.ts";

const openAi = routeDetail("OpenAI", errorResponse);
const sglang = routeDetail("SGLang", errorResponse);

/** Routes of the older way to ask for text: a prompt that is no conversation. */
export function completionsRoutes(context: ServerContext, begin: Begin) {
  const parse = (kind: string, schema: TSchema) => jsonBody(begin, kind, context, schema);
  return new Elysia({ name: "collie-completions", normalize: false })
    .post(
      "/v1/completions",
      ({ body, request, server }) => {
        server?.timeout(request, 0); // a long prefill is silent
        return handleCompletions(body, context, begin(request, "cmpl"));
      },
      {
        parse: parse("cmpl", completionRequest),
        body: completionRequest,
        detail: openAi(
          "Completions",
          "OpenAI's Completions with the sampling extensions of vLLM. With `stream`, server-sent events.",
          completionResponse,
        ),
      },
    )
    .post(
      "/generate",
      ({ body, request, server }) => {
        server?.timeout(request, 0);
        return handleGenerate(body, context, begin(request, "gnt"));
      },
      {
        parse: parse("gnt", generateRequest),
        body: generateRequest,
        detail: sglang(
          "Generate",
          "SGLang's native form. With `stream`, server-sent events, each with the whole text so far.",
          generateResponse,
        ),
      },
    );
}
