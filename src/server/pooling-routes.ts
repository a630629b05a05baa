import { Elysia } from "elysia";
import { handleClassify } from "../apis/classify/handle.ts";
import { classifyRequest, classifyResponse } from "../apis/classify/schema.ts";
import { handleEmbeddings } from "../apis/embeddings/handle.ts";
import { embeddingsRequest, embeddingsResponse } from "../apis/embeddings/schema.ts";
import { errorResponse } from "../apis/openai/errors.ts";
import { handleRerank } from "../apis/rerank/handle.ts";
import { rerankRequest, rerankResponse } from "../apis/rerank/schema.ts";
import { withFallback } from "../apis/shared/fallback.ts";
import type { ServerContext } from "./context.ts";
import { eitherWay } from "./either-way.ts";
import { type Begin, bodyDetail, jsonBody, patient, routeDetail, type Timeouts } from "./route-parts.ts";

const openAi = routeDetail("OpenAI", errorResponse);
const vectors = routeDetail("Vectors", errorResponse);

/** Routes of the models that give vectors. */
export function poolingRoutes(context: ServerContext, begin: Begin) {
  const embeddings = eitherWay(
    { kind: "embd", endpoint: "/v1/embeddings", schema: embeddingsRequest, handle: handleEmbeddings },
    context,
    begin,
  );
  const reranking = eitherWay(
    { kind: "rerank", endpoint: "/v1/rerank", schema: rerankRequest, handle: handleRerank, mayLackModel: true },
    context,
    begin,
  );

  const rerank = ({ body, request, server }: { body: unknown; request: Request; server: Timeouts | null }) => {
    patient(request, server); // a long batch is silent
    return reranking.answer(body, request);
  };
  const rerankOptions = (summary: string) => ({
    parse: reranking.parse,
    detail: {
      ...vectors(
        summary,
        "The best first, by the cosine of the vectors that an embedding model gives for query and documents.",
        rerankResponse,
      ),
      ...bodyDetail(rerankRequest),
    },
  });

  return new Elysia({ name: "collie-pooling", normalize: false })
    .post(
      "/v1/embeddings",
      ({ body, request, server }) => {
        patient(request, server); // a long batch is silent
        return embeddings.answer(body, request);
      },
      {
        parse: embeddings.parse,
        detail: {
          ...openAi(
            "Embeddings",
            "OpenAI's Embeddings: vectors of texts or of token ids, as numbers or base64.",
            embeddingsResponse,
          ),
          ...bodyDetail(embeddingsRequest),
        },
      },
    )
    .post("/rerank", rerank, rerankOptions("Sort documents by a query"))
    .post("/v1/rerank", rerank, rerankOptions("The same"))
    .post(
      "/v1/classify",
      ({ body, request, server }) => {
        patient(request, server);
        return withFallback(
          { endpoint: "classify", model: body.model, isStream: false },
          context,
          begin(request, "classify"),
          (its, scope) => handleClassify(body, its, scope),
        );
      },
      {
        parse: jsonBody(begin, "classify", context, classifyRequest),
        body: classifyRequest,
        detail: vectors(
          "Classify texts",
          "vLLM's form. The labels are those of the model's config.json.",
          classifyResponse,
        ),
      },
    );
}
