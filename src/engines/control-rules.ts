import type { PlainMessage } from "../protobuf/codec.ts";
import type { ModelInfo, ServerInfo } from "./engine.ts";
import { count, defaultSampling, text, texts } from "./info.ts";

/** All in which the dialects differ in the calls besides generations and embeddings. */
export interface ControlRules {
  /** AbortRequests, one for each call. */
  abort(requestIds: readonly string[]): readonly PlainMessage[];
  /** Of a HealthCheckResponse. */
  healthy(reply: PlainMessage): { readonly healthy: boolean; readonly message: string };
  /** Of a GetModelInfoResponse; `server` is asked for where `modelNeedsServer` says so. */
  model(reply: PlainMessage, server: PlainMessage): ModelInfo;
  readonly modelNeedsServer?: boolean;
  /** Of a GetServerInfoResponse. */
  server(reply: PlainMessage): ServerInfo;
  /** `EngineFacts.waitsForReasoning`, by what the engine tells. */
  waitsForReasoning(labels: Readonly<Record<string, string>>): boolean | undefined;
  /** GetLoadsRequest. */
  readonly loadsAsk?: PlainMessage;
  /** Whether a waiting count of uncached tokens that is 0 is told, and not just unknown. */
  readonly tellsUncached?: boolean;
}

/** AbortRequest with a list. */
export const abortTogether: ControlRules["abort"] = (requestIds) => [{ request_ids: requestIds }];
/** AbortRequest with one id. */
export const abortEach: ControlRules["abort"] = (requestIds) => requestIds.map((request_id) => ({ request_id }));

/** Where an engine says that it starts to constrain. */
export const constrainedStart: ControlRules["waitsForReasoning"] = (labels) =>
  STARTS[labels["constrained_decoding_start"] ?? ""];
const STARTS: Readonly<Record<string, boolean>> = { after_reasoning: true, first_token: false };

export const healthyFlag: ControlRules["healthy"] = (reply) => ({
  healthy: reply["healthy"] === true,
  message: text(reply["message"]),
});

/** The fields that most dialects name alike. */
export function commonModelInfo(reply: PlainMessage): ModelInfo {
  return {
    modelPath: text(reply["model_path"]),
    servedModelName: text(reply["served_model_name"]),
    tokenizerPath: text(reply["tokenizer_path"]),
    modelType: text(reply["model_type"]),
    architectures: texts(reply["architectures"]),
    isGeneration: reply["is_generation"] !== false,
    supportsVision: reply["supports_vision"] === true,
    contextLength: count(reply["max_context_length"]),
    vocabSize: count(reply["vocab_size"]),
    eosTokenIds: (reply["eos_token_ids"] as number[] | undefined) ?? [],
    defaultSampling: defaultSampling(text(reply["default_sampling_params_json"])),
  };
}
