/** Model and server info of the vLLM dialect in the gateway's terms. */
import type { PlainMessage } from "../../protobuf/codec.ts";
import type { ModelInfo, ServerInfo } from "../engine.ts";

/** Sampling defaults that the gateway applies for the engine. */
const DEFAULT_KEYS = new Set(["temperature", "top_p", "top_k", "min_p", "repetition_penalty"]);
/** Fields of the server info that have a place of their own, or that no servicer fills. */
const NO_LABEL = new Set([
  "active_requests",
  "is_paused",
  "last_receive_timestamp",
  "uptime_seconds",
  "server_type",
  "data_parallel_size",
  "max_num_seqs",
  "block_size",
]);

/** The numbers of `default_sampling_params_json`; a text that is no JSON object counts as none. */
function defaultSampling(json: string): Record<string, number> {
  const defaults: Record<string, number> = {};
  let parsed: unknown;
  try {
    parsed = json === "" ? {} : JSON.parse(json);
  } catch {
    return defaults;
  }
  if (typeof parsed !== "object" || parsed === null) return defaults;
  for (const [key, value] of Object.entries(parsed))
    if (DEFAULT_KEYS.has(key) && typeof value === "number" && Number.isFinite(value)) defaults[key] = value;
  return defaults;
}

export function toModelInfo(reply: PlainMessage): ModelInfo {
  return {
    modelPath: reply["model_path"] as string,
    servedModelName: reply["served_model_name"] as string,
    tokenizerPath: reply["tokenizer_path"] as string,
    modelType: reply["model_type"] as string,
    architectures: reply["architectures"] as string[],
    isGeneration: reply["is_generation"] as boolean,
    supportsVision: reply["supports_vision"] as boolean,
    contextLength: reply["max_context_length"] as number,
    vocabSize: reply["vocab_size"] as number,
    eosTokenIds: reply["eos_token_ids"] as number[],
    defaultSampling: defaultSampling(reply["default_sampling_params_json"] as string),
  };
}

export function toServerInfo(reply: PlainMessage): ServerInfo {
  const labels: Record<string, string> = {};
  for (const [key, value] of Object.entries(reply))
    if (!NO_LABEL.has(key) && value !== "" && value !== 0) labels[key] = String(value);
  return {
    dataParallelSize: Math.max(1, reply["data_parallel_size"] as number),
    maxRunningRequests: Math.max(0, reply["max_num_seqs"] as number),
    blockSize: Math.max(0, reply["block_size"] as number),
    labels,
  };
}
