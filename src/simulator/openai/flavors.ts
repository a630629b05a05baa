import type { SimulatorHost } from "../host.ts";
import type { ErrorForm } from "../http/call.ts";
import type { KvPorts } from "../kv/zmq-publisher.ts";
import type { SimulatorOptions } from "../options.ts";

const SGLANG_VERSION = "0.5.23";

/** In what the HTTP servers of engines differ, as far as a gateway can see. */
export interface Flavor {
  /** `owned_by` of its models. */
  readonly owner: string;
  readonly errors: ErrorForm;
  /** Body and type of an answer to `GET /health`; undefined: no such route. */
  readonly health: { readonly type: string; readonly text: string } | undefined;
  /** Requests for another model than the served one are refused. */
  readonly checksModel: boolean;
  /** Message for a model that it does not have. */
  unknownModel(model: string): string;
  /** Members of a model's entry besides the common ones. */
  modelFacts(host: SimulatorHost): Record<string, unknown>;
  /** Answer to `/server_info`; undefined: no such route. */
  readonly serverInfo?: (host: SimulatorHost) => Record<string, unknown>;
  /** Members of every answer besides OpenAI's. */
  readonly extras: Readonly<Record<string, unknown>>;
  /** `stop_reason` (vLLM) or `matched_stop` (SGLang): the stop that matched, beside `finish_reason`. */
  readonly matchedStop: "stop_reason" | "matched_stop" | undefined;
  /** Paths that rerank; empty: it can't. */
  readonly rerank: readonly string[];
}

const TYPES: Readonly<Record<number, string>> = {
  401: "AuthenticationError",
  404: "NotFoundError",
  429: "RateLimitError",
};

function errorType(status: number): string {
  return TYPES[status] ?? (status < 500 ? "BadRequestError" : "InternalServerError");
}

/** What SGLang is started with, as JSON: `*` is the address that it is reached at. */
function eventsConfig({ port, replayPort }: KvPorts): string {
  return JSON.stringify({
    publisher: "zmq",
    endpoint: `tcp://*:${port}`,
    replay_endpoint: replayPort === undefined ? null : `tcp://*:${replayPort}`,
    topic: "",
  });
}

const vllm: Flavor = {
  owner: "vllm",
  errors: {
    body: (code, message) => ({ error: { message, type: errorType(code), param: null, code } }),
    lastEvent: "[DONE]",
  },
  health: { type: "text/plain", text: "" },
  checksModel: true,
  unknownModel: (model) => `The model \`${model}\` does not exist.`,
  modelFacts: ({ model }) => ({ root: model.path, parent: null, max_model_len: model.contextLength, permission: [] }),
  extras: { service_tier: null, system_fingerprint: null },
  matchedStop: "stop_reason",
  rerank: ["/v1/rerank", "/v2/rerank", "/rerank"],
};

const sglang: Flavor = {
  owner: "sglang",
  errors: {
    body: (code, message) => ({
      object: "error",
      message,
      type: errorType(code).replace("Error", ""),
      param: null,
      code,
    }),
    lastEvent: "[DONE]",
  },
  health: { type: "text/plain", text: "" },
  checksModel: false,
  unknownModel: (model) => `Model ${model} not found`,
  modelFacts: ({ model }) => ({ root: model.servedName, parent: null, max_model_len: model.contextLength }),
  serverInfo: ({ model, ranks, pairing, kvPorts }) => ({
    model_path: model.path,
    tokenizer_path: model.path,
    served_model_name: model.servedName,
    context_length: model.contextLength,
    dp_size: ranks.size,
    disaggregation_mode: pairing?.role ?? "null",
    ...(pairing?.depot ? { disaggregation_bootstrap_port: pairing.depot.port } : {}),
    page_size: ranks.options.blockSize,
    max_running_requests: ranks.options.maxRunning,
    max_total_num_tokens: ranks.options.kvTokens,
    kv_events_config: kvPorts() ? eventsConfig(kvPorts()!) : null,
    version: SGLANG_VERSION,
  }),
  extras: { metadata: { weight_version: "default" } },
  matchedStop: "matched_stop",
  rerank: ["/v1/rerank"],
};

const llamacpp: Flavor = {
  owner: "llamacpp",
  errors: {
    body: (code, message) => ({
      error: { code, message, type: code < 500 ? "invalid_request_error" : "server_error" },
    }),
    lastEvent: undefined,
  },
  health: { type: "application/json; charset=utf-8", text: '{"status":"ok"}' },
  checksModel: false,
  unknownModel: (model) => `model '${model}' not found`,
  modelFacts: ({ model }) => ({
    meta: {
      vocab_type: 2,
      n_vocab: model.vocabSize,
      n_ctx_train: model.contextLength,
      n_embd: model.poolingDim ?? 1024,
    },
  }),
  extras: { system_fingerprint: "b0000-simulated" },
  matchedStop: undefined,
  rerank: ["/v1/rerank", "/rerank", "/v1/reranking", "/reranking"],
};

const ollama: Flavor = {
  owner: "library",
  errors: {
    body: (_code, message) => ({ error: { message, type: "api_error", param: null, code: null } }),
    lastEvent: undefined,
  },
  health: undefined,
  checksModel: true,
  unknownModel: (model) => `model '${model}' not found`,
  modelFacts: () => ({}),
  extras: { system_fingerprint: "fp_ollama" },
  matchedStop: undefined,
  rerank: [],
};

export const FLAVORS: Readonly<Record<SimulatorOptions["flavor"], Flavor>> = { vllm, sglang, llamacpp, ollama };
