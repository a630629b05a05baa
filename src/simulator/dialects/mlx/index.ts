import { PROTOS } from "../../../engines/protos.ts";
import { protoCodec } from "../../../protobuf/codec.ts";
import type { GenerationSpec, GenerationStyle } from "../../generation.ts";
import type { GrpcMethod } from "../../grpc/server.ts";
import { opened, type SimulatorHost } from "../../host.ts";
import { logRequest } from "../../log-request.ts";
import { defaultSampling } from "../../sampling.ts";
import type { Dialect } from "../dialect.ts";
import { biases, float, type GenerateReader, generateCall, invalid, part, setOptional, tokenIds } from "../generate.ts";
import { abortRequest, codedCalls, tokenizerBundle } from "../methods.ts";
import { tokenMessages } from "../token-messages.ts";

const STYLE: GenerationStyle = {
  completes: "each",
  abort: "bare-ok",
  oneTokenChunks: true,
  trimsStop: false,
  namesEos: true,
  knowsOtherEos: false,
};

const messages = tokenMessages({
  response: { chunk: 1, complete: 2 },
  chunk: { ids: 1, promptTokens: 2, completionTokens: 3, cachedTokens: 4, outputLogprobs: 5, index: 6 },
  complete: {
    ids: 1,
    reason: 2,
    promptTokens: 3,
    completionTokens: 4,
    cachedTokens: 5,
    outputLogprobs: 6,
    index: 7,
    matchedId: 8,
  },
  completeRepeats: "nothing",
  indexOnlyInStreams: false,
  logprobs: "lists",
  sortsRows: true,
});

const requests: GenerateReader = {
  read(request): GenerationSpec {
    const params = part(request, "sampling_params");
    const s = defaultSampling();
    s.temperature = float(params, "temperature", 1);
    s.topP = float(params, "top_p");
    s.topK = float(params, "top_k");
    s.minP = float(params, "min_p");
    s.repetitionPenalty = float(params, "repetition_penalty");
    s.frequencyPenalty = float(params, "frequency_penalty");
    s.presencePenalty = float(params, "presence_penalty");
    s.logitBias = biases(params["logit_bias"]);
    setOptional(s, "maxTokens", params["max_tokens"]);
    s.stopTokenIds = [...tokenIds(params["stop_token_ids"])];
    s.ignoreEos = params["ignore_eos"] === true;
    if (float(params, "logprobs") > 0) s.logprobs = float(params, "logprobs");
    setOptional(s, "seed", params["seed"]);
    return {
      requestId: request["request_id"] as string,
      prompt: tokenIds(part(request, "tokenized")["input_ids"]),
      sampling: s,
      stream: request["stream"] === true,
      extra: {},
    };
  },
  // It checks nothing else: no number, no id, no length.
  refusal: (request) =>
    invalid(request["tokenized"] === undefined ? "MLX servicer requires tokenized input" : undefined),
  dead: "Generation thread is not alive",
};

/** Before `smg-grpc-servicer` 0.14 a bundle had only what a tokenizer needs. */
const OLD_BUNDLE =
  /^(?:tokenizer\.json|tokenizer_config\.json|special_tokens_map\.json|tokenizer\.model|tiktoken\.model|merges\.txt|vocab\.json|added_tokens\.json|chat_template\.(?:json|jinja)|.*\.tiktoken)$/;
const OLD_PIECE_BYTES = 524_288;

const proto = PROTOS.mlx;

/** `mlx.grpc.engine.MlxEngine` as mlx-lm with its Python servicer serves it. */
export const mlx: Dialect = {
  name: "mlx",
  proto,
  file: "mlx_engine.proto",
  healthService: "server",
  methods(host) {
    const { model } = host;
    const coded = codedCalls(proto);
    return {
      Generate: generate(host),
      HealthCheck: coded("HealthCheckRequest", "HealthCheckResponse", () => ({
        healthy: host.alive,
        message: host.alive ? "OK" : "Generation thread is not alive",
      })),
      Abort: coded("AbortRequest", "AbortResponse", ({ request_ids }) => {
        for (const id of request_ids as readonly string[]) abortRequest(host, id);
        return {};
      }),
      GetModelInfo: coded("GetModelInfoRequest", "GetModelInfoResponse", () => ({
        model_path: model.path,
        is_generation: true,
        max_context_length: model.contextLength,
        vocab_size: model.vocabSize,
        served_model_name: model.path,
        model_type: model.modelType,
        architectures: model.architectures,
        eos_token_ids: model.eosTokenIds,
        pad_token_id: model.padTokenId,
        bos_token_id: model.bosTokenId,
        max_req_input_len: model.contextLength,
      })),
      GetServerInfo: coded("GetServerInfoRequest", "GetServerInfoResponse", () => ({
        server_type: "mlx-grpc",
        active_requests: host.open.size,
        uptime_seconds: (performance.now() - host.startedAt) / 1000,
      })),
      GetTokenizer:
        host.protocol === "0.4.14"
          ? tokenizerBundle(host, { pieceBytes: OLD_PIECE_BYTES, includes: (name) => OLD_BUNDLE.test(name) })
          : tokenizerBundle(host),
    };
  },
};

/** A request without ids is an exception in the engine's loop: nobody ever answers it. */
function generate(host: SimulatorHost): GrpcMethod {
  const run = generateCall(host, proto, requests, STYLE, messages);
  const codec = protoCodec(proto);
  return (call, message) => {
    const request = codec.decode("GenerateRequest", message);
    const spec = requests.read(request, host);
    if (request["tokenized"] === undefined || spec.prompt.length > 0) {
      run(call, message);
      return;
    }
    const record = logRequest(host, spec, call, "running");
    const close = opened(host, spec.requestId, {
      abort() {
        record.outcome = "aborted";
        close();
        call.end();
      },
    });
    call.onCancel = () => {
      record.outcome = "cancelled";
      close();
    };
  };
}
