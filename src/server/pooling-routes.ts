import type { TSchema } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { handleClassify } from "../apis/classify/handle.ts";
import { classifyRequest, classifyResponse } from "../apis/classify/schema.ts";
import { handleEmbeddings } from "../apis/embeddings/handle.ts";
import { embeddingsRequest, embeddingsResponse } from "../apis/embeddings/schema.ts";
import { errorResponse } from "../apis/openai/errors.ts";
import { handleRerank } from "../apis/rerank/handle.ts";
import { type RerankRequest, rerankRequest, rerankResponse } from "../apis/rerank/schema.ts";
import type { ServerContext } from "./context.ts";
import { type Begin, jsonBody, patient, routeDetail, type Timeouts } from "./route-parts.ts";

const openAi = routeDetail("OpenAI", errorResponse);
const vectors = routeDetail("Vectors", errorResponse);

/** Routes of the models that give vectors. */
export function poolingRoutes(context: ServerContext, begin: Begin) {
  const parse = (kind: string, schema: TSchema) => jsonBody(begin, kind, context, schema);

  const rerank = ({ body, request, server }: { body: RerankRequest; request: Request; server: Timeouts | null }) => {
    patient(request, server); // a long batch is silent
    return handleRerank(body, context, begin(request, "rerank"));
  };
  const rerankOptions = (summary: string) => ({
    parse: parse("rerank", rerankRequest),
    body: rerankRequest,
    detail: vectors(
      summary,
      "The best first, by the cosine of the vectors that an embedding model gives for query and documents.",
      rerankResponse,
    ),
  });

  return new Elysia({ name: "collie-pooling", normalize: false })
    .post(
      "/v1/embeddings",
      ({ body, request, server }) => {
        patient(request, server); // a long batch is silent
        return handleEmbeddings(body, context, begin(request, "embd"));
      },
      {
        parse: parse("embd", embeddingsRequest),
        body: embeddingsRequest,
        detail: openAi(
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
        parse: parse("classify", classifyRequest),
        body: classifyRequest,
        detail: vectors(
          "Classify texts",
          "vLLM's form. The labels are those of the model's config.json.",
          classifyResponse,
        ),
      },
    );
}
