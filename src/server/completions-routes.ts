import { Elysia } from "elysia";
import { handleCompletions } from "../apis/completions/handle.ts";
import { completionRequest, completionResponse } from "../apis/completions/schema.ts";
import { handleGenerate } from "../apis/generate/handle.ts";
import { generateRequest, generateResponse } from "../apis/generate/schema.ts";
import { errorResponse } from "../apis/openai/errors.ts";
import { readJson } from "./body.ts";
import type { ServerContext } from "./context.ts";
import type { RequestScope } from "./request-scope.ts";

const json = (description: string, schema: object) => ({ description, content: { "application/json": { schema } } });
const detail = (tag: string, summary: string, description: string, answer: object) => ({
  tags: [tag],
  summary,
  description,
  responses: {
    200: json("The answer", answer),
    "4XX": json("The request is wrong", errorResponse),
    "5XX": json("It could not be served", errorResponse),
  },
});

/**
 * Routes of the older way to ask for text: a prompt that is no conversation. `begin` gives the scope of a request, whose id begins with
 * `kind`, and finishes it if the request fails before it is handled.
 */
export function completionsRoutes(context: ServerContext, begin: (request: Request, kind: string) => RequestScope) {
  const parse =
    (kind: string) =>
    ({ request }: { request: Request }) => {
      begin(request, kind);
      return readJson(request, context.config.maxPayloadSize);
    };
  return new Elysia({ name: "collie-completions", normalize: false })
    .post(
      "/v1/completions",
      ({ body, request, server }) => {
        server?.timeout(request, 0); // a long prefill is silent
        return handleCompletions(body, context, begin(request, "cmpl"));
      },
      {
        parse: parse("cmpl"),
        body: completionRequest,
        detail: detail(
          "OpenAI",
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
        parse: parse("gnt"),
        body: generateRequest,
        detail: detail(
          "SGLang",
          "Generate",
          "SGLang's native form. With `stream`, server-sent events, each with the whole text so far.",
          generateResponse,
        ),
      },
    );
}
