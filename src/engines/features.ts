/** What a request may need of an engine, and what an engine offers, as bits: a worker can do a request if none is missing. */
import type { Constraint, GenerateRequest } from "./engine.ts";

export const Feature = {
  generate: 1 << 0,
  embed: 1 << 1,
  jsonSchema: 1 << 2,
  regex: 1 << 3,
  grammar: 1 << 4,
  structuralTag: 1 << 5,
  choice: 1 << 6,
  /** Several choices from one request. */
  samples: 1 << 7,
  logprobs: 1 << 8,
  promptLogprobs: 1 << 9,
  logitBias: 1 << 10,
  seed: 1 << 11,
  minTokens: 1 << 12,
  /** A request may be pinned to a data-parallel rank. */
  dataParallelRank: 1 << 13,
  minP: 1 << 14,
  frequencyPenalty: 1 << 15,
  presencePenalty: 1 << 16,
  ignoreEos: 1 << 17,
  loads: 1 << 18,
  flushCache: 1 << 19,
  profile: 1 << 20,
  tokenizer: 1 << 21,
  /** It can prefill for another engine, or decode what another has prefilled. */
  handover: 1 << 22,
  kvEvents: 1 << 23,
} as const;

export type FeatureName = keyof typeof Feature;

const CONSTRAINTS: Readonly<Record<Constraint["kind"], number>> = {
  json_schema: Feature.jsonSchema,
  json_object: Feature.jsonSchema,
  regex: Feature.regex,
  grammar: Feature.grammar,
  structural_tag: Feature.structuralTag,
  choice: Feature.choice,
};

const sets = new Map<number, ReadonlySet<Constraint["kind"]>>();

/** Kinds of constraints among `features`. */
export function constraintsOf(features: number): ReadonlySet<Constraint["kind"]> {
  let kinds = sets.get(features);
  if (kinds === undefined) {
    const all = Object.entries(CONSTRAINTS) as [Constraint["kind"], number][];
    kinds = new Set(all.filter(([, bit]) => (features & bit) !== 0).map(([kind]) => kind));
    sets.set(features, kinds);
  }
  return kinds;
}

/** Features without which a request would not be done as asked. Neutral values need nothing. */
export function featuresOf({
  sampling,
  dataParallelRank,
  handover,
}: Pick<GenerateRequest, "sampling" | "dataParallelRank" | "handover">): number {
  let needed: number = Feature.generate;
  if (sampling.constraint !== undefined) needed |= CONSTRAINTS[sampling.constraint.kind];
  if ((sampling.n ?? 1) > 1) needed |= Feature.samples;
  if (sampling.logprobs !== undefined) needed |= Feature.logprobs;
  if (sampling.promptLogprobs !== undefined) needed |= Feature.promptLogprobs;
  if (sampling.logitBias !== undefined && sampling.logitBias.size > 0) needed |= Feature.logitBias;
  if (sampling.seed !== undefined) needed |= Feature.seed;
  if (sampling.minTokens) needed |= Feature.minTokens;
  if (sampling.minP) needed |= Feature.minP;
  if (sampling.frequencyPenalty) needed |= Feature.frequencyPenalty;
  if (sampling.presencePenalty) needed |= Feature.presencePenalty;
  if (sampling.ignoreEos) needed |= Feature.ignoreEos;
  if (dataParallelRank !== undefined) needed |= Feature.dataParallelRank;
  if (handover !== undefined) needed |= Feature.handover;
  return needed;
}

/** Names of features as clients know them: the fields of a request that need them. */
const FIELDS: Readonly<Record<FeatureName, string>> = {
  generate: "text generation",
  embed: "embeddings",
  jsonSchema: "response_format",
  regex: "regex",
  grammar: "grammar",
  structuralTag: "structural tags",
  choice: "choice",
  samples: "n",
  logprobs: "logprobs",
  promptLogprobs: "prompt_logprobs",
  logitBias: "logit_bias",
  seed: "seed",
  minTokens: "min_tokens",
  dataParallelRank: "data_parallel_rank",
  minP: "min_p",
  frequencyPenalty: "frequency_penalty",
  presencePenalty: "presence_penalty",
  ignoreEos: "ignore_eos",
  loads: "loads",
  flushCache: "flush_cache",
  profile: "profiling",
  tokenizer: "tokenizer bundles",
  handover: "disaggregation",
  kvEvents: "KV events",
};

/** The fields of a request that need `bits`. */
export function fieldsOf(bits: number): string[] {
  const names = Object.keys(Feature) as FeatureName[];
  return names.filter((name) => (bits & Feature[name]) !== 0).map((name) => FIELDS[name]);
}
