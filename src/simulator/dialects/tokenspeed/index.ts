import { PROTOS } from "../../../engines/protos.ts";
import type { PlainMessage } from "../../../protobuf/codec.ts";
import type { GenerationStyle } from "../../generation.ts";
import type { SimulatorHost } from "../../host.ts";
import type { Dialect } from "../dialect.ts";
import { generateCall } from "../generate.ts";
import { loadsReply, rankLoad } from "../loads.ts";
import {
  abortRequest,
  codedCalls,
  flushCache,
  generatingHealthCheck,
  profiling,
  subscribeKvEvents,
  tokenizerBundle,
} from "../methods.ts";
import { tokenMessages } from "../token-messages.ts";
import { tokenspeedRequests } from "./request.ts";

const STYLE: GenerationStyle = {
  completes: "each",
  abort: "status",
  oneTokenChunks: false,
  trimsStop: true,
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
    index: 6,
    weightVersion: 7,
  },
  complete: {
    ids: 1,
    reason: 2,
    promptTokens: 3,
    completionTokens: 4,
    cachedTokens: 5,
    outputLogprobs: 6,
    matchedId: 7,
    matchedString: 8,
    index: 9,
    weightVersion: 12,
  },
  completeRepeats: "last-chunk",
  indexOnlyInStreams: false,
  logprobs: "lists",
  sortsRows: true,
});

const proto = PROTOS.tokenspeed;
/** What a servicer adds to an id for the samples of one request. */
const SAMPLE_SUFFIX = /-n\d+$/;

/** `tokenspeed.grpc.scheduler.TokenSpeedScheduler` as TokenSpeed with its Python servicer serves it. */
export const tokenspeed: Dialect = {
  name: "tokenspeed",
  proto,
  file: "tokenspeed_scheduler.proto",
  healthService: "engine",
  methods(host) {
    const coded = codedCalls(proto);
    const isOld = host.protocol === "0.4.14";
    return {
      Generate: generateCall(host, proto, tokenspeedRequests, STYLE, messages),
      HealthCheck: generatingHealthCheck(host, proto, 500),
      Abort: coded("AbortRequest", "AbortResponse", ({ request_id }) => {
        const success = abortRequest(host, (request_id as string).replace(SAMPLE_SUFFIX, ""));
        return { success, message: success ? "Aborted" : `Request ${request_id as string} not found` };
      }),
      GetModelInfo: coded("GetModelInfoRequest", "GetModelInfoResponse", () => modelInfo(host)),
      GetServerInfo: coded("GetServerInfoRequest", "GetServerInfoResponse", () => serverInfo(host)),
      GetLoads: coded("GetLoadsRequest", "GetLoadsResponse", (request) => loads(host, request, isOld)),
      FlushCache: flushCache(host, proto, {
        everyMs: isOld ? undefined : 50,
        leastSecs: isOld ? 0 : 2,
        checks: !isOld,
        done: "Cache flushed",
        busy: "Cache not flushed: requests are running",
      }),
      ...profiling(proto),
      GetTokenizer: tokenizerBundle(host),
      SubscribeKvEvents: subscribeKvEvents(host),
    };
  },
};

function modelInfo({ model, protocol }: SimulatorHost): PlainMessage {
  return {
    model_path: model.path,
    tokenizer_path: model.path,
    served_model_name: model.servedName,
    model_type: model.modelType,
    architectures: model.architectures,
    max_context_length: model.contextLength,
    max_req_input_len: model.contextLength - 1,
    vocab_size: model.vocabSize,
    eos_token_ids: model.eosTokenIds,
    pad_token_id: model.padTokenId,
    bos_token_id: model.bosTokenId,
    weight_version: protocol === "0.4.14" ? "" : "default",
    default_sampling_params_json: model.defaultSamplingJson,
    supports_vision: false,
    supports_multimodal: false,
    model_dtype: "bfloat16",
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
}: SimulatorHost): PlainMessage {
  const { options } = ranks;
  const uptime = (performance.now() - startedAt) / 1000;
  const news = {
    engine_reasoning_parser: waitsForReasoning ? "qwen3" : "",
    constrained_decoding_start: "first_token",
    grammar_backend: grammarBackend,
  };
  return {
    server_args: {
      model: model.path,
      tokenizer: model.path,
      served_model_name: model.servedName,
      context_length: model.contextLength,
      tp_size: 1,
      pp_size: 1,
      max_running_requests: options.maxRunning,
      page_size: options.blockSize,
      // New servicers name it only where ranks can be pinned.
      ...(protocol === "0.4.14" || ranks.size > 1 ? { dp_size: ranks.size } : {}),
      ...(protocol === "0.4.14" ? {} : news),
    },
    scheduler_info: { max_total_num_tokens: options.kvTokens },
    active_requests: open.size,
    is_paused: false,
    uptime_seconds: uptime,
    max_total_num_tokens: options.kvTokens,
    tokenspeed_version: "simulated",
    start_time: Date.now() / 1000 - uptime,
    constrained_decoding: "requested",
  };
}

function loads({ ranks }: SimulatorHost, request: PlainMessage, isOld: boolean): PlainMessage {
  const told = ranks.loads().map((load, rank): PlainMessage => {
    const all = rankLoad(rank, load, ranks.options);
    return {
      dp_rank: rank,
      num_running_reqs: all["num_running_reqs"],
      num_waiting_reqs: all["num_waiting_reqs"],
      num_total_reqs: all["num_total_reqs"],
      num_used_tokens: all["num_used_tokens"],
      max_total_num_tokens: all["max_total_num_tokens"],
      token_usage: all["token_usage"],
      ...(isOld
        ? {}
        : {
            max_running_requests: all["max_running_requests"],
            active_token_usage: load.blocksInUse / load.blocksTotal,
          }),
    };
  });
  return loadsReply("tokenspeed", told, request["dp_rank"]);
}
