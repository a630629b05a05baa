/** What a server of OpenAI's API tells of itself in its list of models. */
import type { EngineFacts } from "../facts.ts";
import { Feature } from "../features.ts";
import type { HttpModel } from "./engine.ts";

/** Who made the server, by `owned_by` of its models. */
export const HTTP_RUNTIMES = ["vllm", "sglang", "llamacpp", "ollama", "unknown"] as const;
export type Runtime = (typeof HTTP_RUNTIMES)[number];

const RUNTIMES: Readonly<Record<string, Runtime>> = {
  vllm: "vllm",
  sglang: "sglang",
  llamacpp: "llamacpp",
  library: "ollama",
};

const RUNTIME_LABEL = "runtime_type";
/** Ids under which the server knows its models, as a JSON array. */
const NAMES_LABEL = "served_model_names";

/** What clients ask of a model is for the server to refuse. */
const { loads: LOADS, flushCache: FLUSH, profile: PROFILE, tokenizer: TOKENIZER, kvEvents: KV_EVENTS } = Feature;
const ANY_REQUEST =
  Object.values(Feature).reduce((bits, bit) => bits | bit, 0) & ~(LOADS | FLUSH | PROFILE | TOKENIZER | KV_EVENTS);
const CONTROL: Readonly<Record<Runtime, number>> = {
  vllm: LOADS | FLUSH | PROFILE,
  sglang: LOADS | FLUSH | PROFILE,
  llamacpp: LOADS,
  ollama: 0,
  unknown: 0,
};

type Members = Readonly<Record<string, unknown>>;

/** The models of an answer to `GET /v1/models`; undefined for what is none. */
export function modelsOf(text: string): readonly HttpModel[] | undefined {
  return entriesOf(text)?.map((entry) => {
    const { id, root, parent } = entry;
    return {
      id: String(id),
      contextLength: contextOf(entry),
      ...(typeof root === "string" && { root }),
      ...(typeof parent === "string" && { parent }),
    };
  });
}

/** What such an answer tells of the server. */
export function factsFrom(text: string): EngineFacts | undefined {
  const entries = entriesOf(text);
  if (entries === undefined) return undefined;
  const runtime = entries.map((entry) => RUNTIMES[String(entry["owned_by"])]).find((found) => found) ?? "unknown";
  const names = entries.map((entry) => String(entry["id"]));
  return {
    dialect: "openai",
    protocol: "unknown",
    features: ANY_REQUEST | CONTROL[runtime],
    vocabSize: 0,
    contextLength: entries[0] === undefined ? 0 : contextOf(entries[0]),
    maxLogprobs: 0,
    dataParallelSize: 0,
    maxRunningRequests: 0,
    blockSize: 0,
    role: "regular",
    waitsForReasoning: undefined,
    labels: { [RUNTIME_LABEL]: runtime, [NAMES_LABEL]: JSON.stringify(names) },
  };
}

export const runtimeOf = ({ labels }: EngineFacts): Runtime =>
  (labels[RUNTIME_LABEL] as Runtime | undefined) ?? "unknown";

/** Ids under which the server knows its models. */
export function namesIn({ labels }: EngineFacts): readonly string[] {
  const names = labels[NAMES_LABEL];
  return names === undefined ? [] : (JSON.parse(names) as string[]);
}

function entriesOf(text: string): readonly Members[] | undefined {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    return undefined;
  }
  const data = isObject(answer) ? answer["data"] : undefined;
  if (data === null) return []; // Ollama's without a model
  if (!Array.isArray(data)) return undefined;
  return data.filter((entry): entry is Members => isObject(entry) && typeof entry["id"] === "string");
}

/** vLLM and SGLang tell what is served; llama.cpp what it was started with, or else what the model was trained with. */
function contextOf(entry: Members): number {
  const { max_model_len: served, meta } = entry;
  const { n_ctx: started, n_ctx_train: trained } = isObject(meta) ? meta : {};
  const told = [served, started, trained].find((length) => typeof length === "number" && length > 0);
  return typeof told === "number" ? told : 0;
}

const isObject = (value: unknown): value is Members => typeof value === "object" && value !== null;
