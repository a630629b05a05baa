/** Schemas of what embeddings, rerank and classify answer: OpenAI's embeddings, and the forms that Cohere, Jina, vLLM and SGLang share. */
import { type TSchema, Type as t } from "@sinclair/typebox";
import { check } from "./messages.ts";

const closed = <P extends Record<string, TSchema>>(properties: P) =>
  t.Object(properties, { additionalProperties: false });
const count = t.Integer({ minimum: 0 });
const name = t.String({ minLength: 1 });
const usage = closed({ prompt_tokens: count, total_tokens: count });
const created = t.Integer({ minimum: 1_600_000_000, maximum: 9_999_999_999 });

const embeddings = (embedding: TSchema) =>
  closed({
    object: t.Literal("list"),
    data: t.Array(closed({ object: t.Literal("embedding"), index: count, embedding }), { minItems: 1 }),
    model: name,
    usage,
  });
export const floatEmbeddings = embeddings(t.Array(t.Number(), { minItems: 1 }));
export const base64Embeddings = embeddings(
  t.String({ minLength: 1, pattern: "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$" }),
);

const rerank = (result: TSchema) =>
  closed({
    id: t.String({ pattern: "^rerank-." }),
    object: t.Literal("rerank"),
    created,
    model: name,
    results: t.Array(result, { minItems: 1 }),
    usage,
  });
/** A cosine, which rounding may take a little over 1. */
const score = t.Number({ minimum: -1.000001, maximum: 1.000001 });
const result = { index: count, score, relevance_score: score };
export const rerankWithDocuments = rerank(closed({ ...result, document: closed({ text: name }) }));
export const rerankWithoutDocuments = rerank(closed(result));

export const classification = closed({
  id: t.String({ pattern: "^classify-." }),
  object: t.Literal("list"),
  created,
  model: name,
  data: t.Array(
    closed({
      index: count,
      label: name,
      probs: t.Array(t.Number(), { minItems: 1 }),
      num_classes: t.Integer({ minimum: 1 }),
    }),
    { minItems: 1 },
  ),
  usage,
});

/** Throws unless a successful answer has the schema of its route and of what the request asks for. */
export function checkPooling(path: string, request: object, value: unknown): void {
  const asked = request as { encoding_format?: unknown; return_documents?: unknown };
  const schemas: Readonly<Record<string, TSchema>> = {
    "/v1/embeddings": asked.encoding_format === "base64" ? base64Embeddings : floatEmbeddings,
    "/rerank": asked.return_documents === false ? rerankWithoutDocuments : rerankWithDocuments,
    "/v1/classify": classification,
  };
  const schema = schemas[path === "/v1/rerank" ? "/rerank" : path];
  if (schema === undefined) throw new Error(`no schema of what ${path} answers`);
  check(schema, value, path);
}
