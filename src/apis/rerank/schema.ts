import { type Static, Type as t } from "@sinclair/typebox";
import { countField, poolingFields, poolingUsage } from "../pooling/schema.ts";
import { maybe } from "../shared/sampling-fields.ts";

/** Request of `POST /rerank` and `POST /v1/rerank`, in the form of Cohere, Jina, vLLM and SGLang. */
export const rerankRequest = t.Object(
  {
    model: maybe(t.String({ description: "May be left out if there is one model." })),
    query: t.String(),
    documents: t.Optional(
      t.Any({
        type: "array",
        minItems: 1,
        items: { anyOf: [{ type: "string" }, { type: "object", properties: { text: { type: "string" } } }] },
      }),
    ),
    top_n: countField(1, "Most results; all by default"),
    top_k: countField(1, "The same under SGLang's name; top_n goes before it"),
    return_documents: maybe(t.Boolean({ description: "Results hold the documents' texts; true by default" })),
    ...poolingFields,
  },
  { additionalProperties: true, description: "Fields that are not listed are accepted and ignored." },
);
export type RerankRequest = Static<typeof rerankRequest>;

/** Answer of the two. */
export const rerankResponse = t.Object({
  id: t.String(),
  object: t.Literal("rerank"),
  created: t.Integer({ description: "Unix time in seconds" }),
  model: t.String(),
  results: t.Array(
    t.Object({
      index: t.Integer({ description: "Place of the document in the request" }),
      score: t.Number({ description: "Cosine of query and document, -1 to 1" }),
      relevance_score: t.Number({ description: "The same under the name of Cohere and Jina" }),
      document: t.Optional(t.Object({ text: t.String() })),
    }),
  ),
  usage: poolingUsage,
});
