import { startEmbedding } from "../embedding.ts";
import type { SimulatorHost } from "../host.ts";
import type { HttpCall } from "../http/call.ts";
import type { Flavor } from "./flavors.ts";
import { type Body, BodyError, inputs, isRecord } from "./request.ts";

/** Gets a vector for each prompt, in order; `done` hears of them when all are there. */
function vectors(
  host: SimulatorHost,
  call: HttpCall,
  { id, prompts }: { readonly id: string; readonly prompts: readonly Uint32Array[] },
  done: (vectors: readonly Float32Array[]) => void,
): void {
  const dimensions = host.model.poolingDim!;
  const found: Float32Array[] = [];
  let missing = prompts.length;
  // All parts first: the call is over when none is left.
  const parts = prompts.map(() => call.part());
  for (const [i, prompt] of prompts.entries()) {
    startEmbedding(host, { requestId: `${id}-${i}`, prompt, dimensions }, parts[i]!, (vector) => {
      found[i] = vector;
      if (--missing === 0) done(found);
    });
  }
}

/** `/v1/embeddings`. Throws BodyError. */
export function embeddings(host: SimulatorHost, call: HttpCall, body: Body, id: string): void {
  const { model } = host;
  const prompts = inputs(body["input"], "input", model);
  const isBase64 = body["encoding_format"] === "base64";
  checkPrompts(host, prompts);
  vectors(host, call, { id, prompts }, (found) => {
    const tokens = sum(prompts);
    call.json(200, {
      id,
      object: "list",
      created: Math.floor(Date.now() / 1000),
      model: model.servedName,
      data: found.map((vector, index) => ({
        index,
        object: "embedding",
        embedding: isBase64 ? Buffer.from(vector.buffer).toString("base64") : [...vector],
      })),
      usage: { prompt_tokens: tokens, total_tokens: tokens, completion_tokens: 0, prompt_tokens_details: null },
    });
  });
}

/** A reranker: a document's score is how near its vector is to the query's. Throws BodyError. */
export function rerank(host: SimulatorHost, call: HttpCall, flavor: Flavor, body: Body, id: string): void {
  const { query, documents, top_n: topN } = body;
  if (typeof query !== "string") throw new BodyError("query: must be a text");
  if (!Array.isArray(documents) || documents.length === 0) throw new BodyError("documents: must be a list of texts");
  const texts = documents.map((item: unknown) => (isRecord(item) ? String(item["text"]) : String(item)));
  const prompts = [query, ...texts].map((text) => inputs(text, "documents", host.model)[0]!);
  checkPrompts(host, prompts);
  vectors(host, call, { id, prompts }, ([first, ...rest]) => {
    const ranked = rest
      .map((vector, index) => ({ index, score: vector.reduce((all, value, i) => all + value * first![i]!, 0) }))
      .sort((a, b) => b.score - a.score)
      .slice(0, typeof topN === "number" && topN > 0 ? topN : undefined);
    call.json(200, rerankBody(host, flavor, { id, texts, ranked, tokens: sum(prompts) }));
  });
}

interface Ranking {
  readonly id: string;
  readonly texts: readonly string[];
  readonly ranked: readonly { readonly index: number; readonly score: number }[];
  readonly tokens: number;
}

function rerankBody(host: SimulatorHost, flavor: Flavor, { id, texts, ranked, tokens }: Ranking): unknown {
  if (flavor.owner === "sglang")
    return ranked.map(({ index, score }) => ({ score, document: texts[index], index, meta_info: { id } }));
  const isVllm = flavor.owner === "vllm";
  return {
    ...(isVllm ? { id } : { object: "list" }),
    model: host.model.servedName,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    results: ranked.map(({ index, score }) => ({
      index,
      ...(isVllm ? { document: { text: texts[index], multi_modal: null } } : {}),
      relevance_score: score,
    })),
  };
}

function checkPrompts({ model }: SimulatorHost, prompts: readonly Uint32Array[]): void {
  for (const prompt of prompts) {
    if (prompt.length === 0) throw new BodyError("input cannot be empty");
    if (prompt.length > model.contextLength)
      throw new BodyError(
        `This model's maximum context length is ${model.contextLength} tokens, and the input has ${prompt.length}.`,
      );
  }
}

function sum(prompts: readonly Uint32Array[]): number {
  return prompts.reduce((all, prompt) => all + prompt.length, 0);
}
