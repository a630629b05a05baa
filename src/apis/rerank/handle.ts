import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { Model } from "../../fleet/view.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { embedAll, refuseGenerating } from "../pooling/embed.ts";
import { type PoolingInput, textInput } from "../pooling/inputs.ts";
import { tokenRules } from "../pooling/tokens.ts";
import { cosine } from "../pooling/vectors.ts";
import type { RerankRequest } from "./schema.ts";

/**
 * Sorts documents by how near they are to a query: by the cosine of their vectors, the best first. Engines have no call for models that
 * read both together. Throws GatewayErrors; the scope is finished afterwards.
 */
export async function handleRerank(
  body: RerankRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    const model = modelOf(body, context);
    refuseGenerating(model);
    if (body.query.trim() === "") throw new InvalidRequestError("Invalid 'query': it is empty", { param: "query" });
    const documents = documentInputs(body.documents);
    const inputs = [textInput(body.query, "query"), ...documents];
    const { vectors, promptTokens } = await embedAll(inputs, tokenRules(body, model), body, model, context, scope);
    const [query, ...others] = vectors as readonly [Float32Array, ...Float32Array[]];
    refuseClassifier(query, model);
    const ranked = others
      .map((vector, index) => ({ index, score: cosine(query, vector) }))
      .sort((a, b) => b.score - a.score || a.index - b.index)
      .slice(0, body.top_n ?? body.top_k ?? undefined);
    const results = ranked.map(({ index, score }) => ({
      index,
      score,
      relevance_score: score,
      ...(body.return_documents !== false && { document: { text: documents[index]?.text } }),
    }));
    const answer = {
      id: scope.id.startsWith("rerank-") ? scope.id : `rerank-${scope.id}`,
      object: "rerank",
      created: Math.floor(Date.now() / 1000),
      model: body.model || model.entry.id,
      results,
      usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
    };
    return Response.json(answer, { headers: { "x-request-id": scope.id } });
  } finally {
    scope.finish();
  }
}

function modelOf({ model }: RerankRequest, { fleet }: ServerContext): Model {
  if (model) return fleet.model(model);
  const [only, another] = fleet.list();
  if (only === undefined || another !== undefined)
    throw new InvalidRequestError("Missing required parameter: 'model'", { param: "model" });
  return fleet.model(only.id);
}

function documentInputs(documents: unknown): PoolingInput[] {
  const param = "documents";
  if (documents === undefined || documents === null)
    throw new InvalidRequestError(`Missing required parameter: '${param}'`, { param });
  if (!Array.isArray(documents) || documents.length === 0)
    throw new InvalidRequestError(`Invalid '${param}': expected a list of texts that is not empty`, { param });
  return documents.map((document: unknown, i) => {
    const at = `${param}[${i}]`;
    const text = typeof document === "object" && document !== null && "text" in document ? document.text : document;
    if (typeof text === "string") return textInput(text, at);
    throw new InvalidRequestError(`Invalid '${at}': expected a string or an object with a text`, { param: at });
  });
}

/** A cross-encoder's numbers are logits of its labels: angles between them mean nothing. */
function refuseClassifier(vector: Float32Array, { entry }: Model): void {
  if (vector.length === entry.pooling?.classes?.labels.length)
    throw new UnsupportedError(
      `The model '${entry.id}' is a classifier or cross-encoder: to rerank, an embedding model is needed`,
      { param: "model" },
    );
}
