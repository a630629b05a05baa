import { Elysia } from "elysia";
import { handleClassify } from "../apis/classify/handle.ts";
import { classifyRequest, classifyResponse } from "../apis/classify/schema.ts";
import { handleEmbeddings } from "../apis/embeddings/handle.ts";
import { embeddingsRequest, embeddingsResponse } from "../apis/embeddings/schema.ts";
import { errorResponse } from "../apis/openai/errors.ts";
import { handleRerank } from "../apis/rerank/handle.ts";
import { type RerankRequest, rerankRequest, rerankResponse } from "../apis/rerank/schema.ts";
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

type Timeouts = { timeout(request: Request, seconds: number): void } | null;

/**
 * Routes of the models that give vectors. `begin` gives the scope of a request, whose id begins with `kind`, and finishes it if the
 * request fails before it is handled.
 */
export function poolingRoutes(context: ServerContext, begin: (request: Request, kind: string) => RequestScope) {
  const parse =
    (kind: string) =>
    ({ request }: { request: Request }) => {
      begin(request, kind);
      return readJson(request, context.config.maxPayloadSize);
    };
  const patient = (request: Request, server: Timeouts) => server?.timeout(request, 0); // a long batch is silent

  const rerank = ({ body, request, server }: { body: RerankRequest; request: Request; server: Timeouts }) => {
    patient(request, server);
    return handleRerank(body, context, begin(request, "rerank"));
  };
  const rerankOptions = (summary: string) => ({
    parse: parse("rerank"),
    body: rerankRequest,
    detail: detail(
      "Vectors",
      summary,
      "The best first, by the cosine of the vectors that an embedding model gives for query and documents.",
      rerankResponse,
    ),
  });

  return new Elysia({ name: "collie-pooling", normalize: false })
    .post(
      "/v1/embeddings",
      ({ body, request, server }) => {
        patient(request, server);
        return handleEmbeddings(body, context, begin(request, "embd"));
      },
      {
        parse: parse("embd"),
        body: embeddingsRequest,
        detail: detail(
          "OpenAI",
          "Embeddings",
          "OpenAI's Embeddings: vectors of texts or of token ids, as numbers or base64.",
          embeddingsResponse,
        ),
      },
    )
    .post("/rerank", rerank, rerankOptions("Sort documents by a query"))
    .post("/v1/rerank", rerank, rerankOptions("The same"))
    .post(
      "/v1/classify",
      ({ body, request, server }) => {
        patient(request, server);
        return handleClassify(body, context, begin(request, "classify"));
      },
      {
        parse: parse("classify"),
        body: classifyRequest,
        detail: detail(
          "Vectors",
          "Classify texts",
          "vLLM's form. The labels are those of the model's config.json.",
          classifyResponse,
        ),
      },
    );
}
