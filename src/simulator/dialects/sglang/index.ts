import { GrpcStatus } from "../../../engines/grpc-error.ts";
import { PROTOS } from "../../../engines/protos.ts";
import type { PlainMessage } from "../../../protobuf/codec.ts";
import { embeddingRecord, startEmbedding } from "../../embedding.ts";
import type { GenerationStyle } from "../../generation.ts";
import type { ServerCall } from "../../grpc/stream.ts";
import type { SimulatorHost } from "../../host.ts";
import type { Dialect } from "../dialect.ts";
import { generateCall, part, tokenIds } from "../generate.ts";
import { loadsReply, rankLoad } from "../loads.ts";
import {
  abortRequest,
  codedCalls,
  encodeReply,
  flushCache,
  generatingHealthCheck,
  profiling,
  subscribeKvEvents,
  tokenizerBundle,
} from "../methods.ts";
import { tokenMessages } from "../token-messages.ts";
import { sglangRequests } from "./request.ts";

const VERSION = "0.5.23";
const SECTIONS = new Set(["core", "memory", "spec", "lora", "disagg", "queues", "all"]);

const STYLE: GenerationStyle = {
  completes: "each",
  abort: "silent",
  oneTokenChunks: false,
  trimsStop: false,
  namesEos: true,
  knowsOtherEos: true,
};

const messages = tokenMessages({
  response: { requestId: 1, chunk: 2, complete: 3 },
  chunk: {
    ids: 1,
    promptTokens: 2,
    completionTokens: 3,
    cachedTokens: 4,
    outputLogprobs: 5,
    inputLogprobs: 7,
    index: 8,
  },
  complete: {
    ids: 1,
    reason: 2,
    promptTokens: 3,
    completionTokens: 4,
    cachedTokens: 5,
    outputLogprobs: 6,
    matchedId: 8,
    matchedString: 9,
    inputLogprobs: 10,
    index: 11,
  },
  completeRepeats: "last-chunk",
  indexOnlyInStreams: true,
  logprobs: "lists",
  sortsRows: true,
});

const proto = PROTOS.sglang;

/** `sglang.grpc.scheduler.SglangScheduler` as SGLang with its Python servicer serves it. */
export const sglang: Dialect = {
  name: "sglang",
  proto,
  file: "sglang_scheduler.proto",
  healthService: "engine",
  methods(host) {
    const coded = codedCalls(proto);
    return {
      Generate: generateCall(host, proto, sglangRequests, STYLE, messages),
      Embed: coded("EmbedRequest", "EmbedResponse", (request, call) => embed(host, request, call)),
      HealthCheck: generatingHealthCheck(host, proto, host.protocol === "0.4.14" ? 1000 : 500),
      Abort: coded("AbortRequest", "AbortResponse", ({ request_id }) => {
        const id = request_id as string;
        if (id.startsWith("HEALTH_CHECK")) return { success: false, message: "Cannot abort health check requests" };
        abortRequest(host, id);
        return { success: true, message: `Request ${id} aborted` };
      }),
      GetModelInfo: coded("GetModelInfoRequest", "GetModelInfoResponse", () => modelInfo(host)),
      GetServerInfo: coded("GetServerInfoRequest", "GetServerInfoResponse", () => serverInfo(host)),
      GetLoads: coded("GetLoadsRequest", "GetLoadsResponse", (request, call) => loads(host, request, call)),
      FlushCache: flushCache(host, proto, {
        everyMs: 50,
        leastSecs: 0,
        checks: false,
        done: "Cache flushed successfully",
        busy: "Flush failed: there are pending requests",
      }),
      ...profiling(proto),
      GetTokenizer: tokenizerBundle(host),
      SubscribeKvEvents: subscribeKvEvents(host),
    };
  },
};

/** `max_context_length` is the capacity of the KV cache, as the servicer has it. */
function modelInfo({ model, ranks }: SimulatorHost): PlainMessage {
  return {
    model_path: model.path,
    tokenizer_path: model.path,
    is_generation: model.poolingDim === undefined,
    weight_version: "default",
    served_model_name: model.servedName,
    max_context_length: ranks.options.kvTokens,
    vocab_size: model.vocabSize,
    model_type: model.modelType,
    architectures: model.architectures,
    eos_token_ids: model.eosTokenIds,
    pad_token_id: model.padTokenId,
    bos_token_id: model.bosTokenId,
    max_req_input_len: model.contextLength - 1,
    default_sampling_params_json: model.defaultSamplingJson,
  };
}

function serverInfo({
  model,
  ranks,
  open,
  startedAt,
  protocol,
  waitsForReasoning,
  grammarBackend,
  pairing,
}: SimulatorHost): PlainMessage {
  const { options } = ranks;
  const uptime = (performance.now() - startedAt) / 1000;
  const news = {
    engine_reasoning_parser: waitsForReasoning ? "qwen3" : "",
    constrained_decoding_start: waitsForReasoning ? "after_reasoning" : "first_token",
    grammar_backend: grammarBackend,
    max_running_requests: options.maxRunning,
  };
  return {
    server_args: {
      model_path: model.path,
      tokenizer_path: model.path,
      served_model_name: model.servedName,
      context_length: model.contextLength,
      tp_size: 1,
      dp_size: ranks.size,
      pp_size: 1,
      load_balance_method: "round_robin",
      disaggregation_mode: modeOf(pairing),
      ...(pairing?.depot ? { disaggregation_bootstrap_port: pairing.depot.port } : {}),
      is_embedding: model.poolingDim !== undefined,
      page_size: options.blockSize,
      ...(protocol === "0.4.14" ? { max_running_requests: null } : news),
    },
    scheduler_info: { max_total_num_tokens: options.kvTokens, max_req_input_len: model.contextLength - 1 },
    active_requests: open.size,
    is_paused: false,
    uptime_seconds: uptime,
    sglang_version: VERSION,
    server_type: "grpc",
    start_time: Date.now() / 1000 - uptime,
    max_total_num_tokens: options.kvTokens,
  };
}

function modeOf(pairing: SimulatorHost["pairing"]): string {
  return pairing?.role ?? "null";
}

function loads(host: SimulatorHost, request: PlainMessage, call: ServerCall): PlainMessage | undefined {
  const asked = request["include"] as readonly string[];
  const unknown = asked.find((section) => !SECTIONS.has(section));
  if (unknown !== undefined) {
    call.end(GrpcStatus.INVALID_ARGUMENT, `Invalid include sections: ${unknown}`);
    return undefined;
  }
  const has = (section: string) => asked.length === 0 || asked.includes("all") || asked.includes(section);
  const { options } = host.ranks;
  const { kvTokens } = options;
  const told = host.ranks.loads().map(
    (load, rank): PlainMessage => ({
      ...rankLoad(rank, load, options),
      ...(has("memory") ? { memory: { weight_gb: 1, kv_cache_gb: 1, graph_gb: 0, token_capacity: kvTokens } } : {}),
      ...(has("queues")
        ? { queues: { waiting: load.waiting, grammar: 0, paused: 0, retracted: load.preemptions } }
        : {}),
      ...(has("disagg") ? { disaggregation: { mode: modeOf(host.pairing) } } : {}),
    }),
  );
  return loadsReply(VERSION, told, request["dp_rank"]);
}

function embed(host: SimulatorHost, request: PlainMessage, call: ServerCall): undefined {
  const { model } = host;
  const requestId = request["request_id"] as string;
  const prompt = tokenIds(part(request, "tokenized")["input_ids"]);
  const dimensions = model.poolingDim;
  if (request["tokenized"] === undefined || prompt.length === 0 || dimensions === undefined) {
    const problem =
      dimensions === undefined ? "This model does not support embeddings" : "Tokenized input must be provided";
    embeddingRecord(host, { requestId, prompt }, call, "refused", problem);
    call.end(GrpcStatus.INVALID_ARGUMENT, problem);
    return;
  }
  startEmbedding(host, { requestId, prompt, dimensions }, call, (vector) => {
    const reply = { embedding_dim: vector.length, embedding: [...vector], prompt_tokens: prompt.length };
    call.send(encodeReply(proto, "EmbedResponse", reply));
  });
}
