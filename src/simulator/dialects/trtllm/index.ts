import { PROTOS } from "../../../engines/protos.ts";
import type { PlainMessage } from "../../../protobuf/codec.ts";
import type { GenerationSpec, GenerationStyle } from "../../generation.ts";
import { defaultSampling, type RequestedConstraint } from "../../sampling.ts";
import type { Dialect } from "../dialect.ts";
import {
  constraintProblem,
  float,
  type GenerateReader,
  generateCall,
  invalid,
  part,
  setOptional,
  tokenIds,
  usualProblem,
} from "../generate.ts";
import { abortRequest, codedCalls } from "../methods.ts";
import { tokenMessages } from "../token-messages.ts";

const STYLE: GenerationStyle = {
  completes: "all-at-end",
  abort: "bare-ok",
  oneTokenChunks: false,
  trimsStop: true,
  namesEos: false,
  knowsOtherEos: true,
};

const messages = tokenMessages({
  response: { requestId: 1, chunk: 2, complete: 3 },
  chunk: { ids: 1, index: 2, promptTokens: 3, completionTokens: 4, cachedTokens: 5, outputLogprobs: 6 },
  complete: {
    ids: 1,
    index: 2,
    reason: 3,
    matchedString: 4,
    promptTokens: 5,
    completionTokens: 6,
    cachedTokens: 7,
    outputLogprobs: 8,
    inputLogprobs: 9,
    matchedId: 13,
  },
  completeRepeats: "all",
  indexOnlyInStreams: false,
  logprobs: "entries",
  sortsRows: false,
});

const GUIDES: Readonly<Record<string, RequestedConstraint["kind"]>> = {
  GUIDE_TYPE_JSON: "json_object",
  GUIDE_TYPE_JSON_SCHEMA: "json_schema",
  GUIDE_TYPE_REGEX: "regex",
  GUIDE_TYPE_EBNF_GRAMMAR: "grammar",
  GUIDE_TYPE_STRUCTURAL_TAG: "structural_tag",
};

const requests: GenerateReader = {
  read(request): GenerationSpec {
    const config = part(request, "sampling_config");
    const output = part(request, "output_config");
    const s = defaultSampling();
    s.temperature = float(config, "temperature", 1);
    s.topP = float(config, "top_p", 1);
    s.topK = float(config, "top_k");
    s.minP = float(config, "min_p");
    s.frequencyPenalty = float(config, "frequency_penalty");
    s.presencePenalty = float(config, "presence_penalty");
    s.repetitionPenalty = float(config, "repetition_penalty", 1);
    s.minTokens = float(config, "min_tokens");
    s.n = float(config, "num_return_sequences") || 1;
    setOptional(s, "seed", config["seed"]);
    setOptional(s, "maxTokens", request["max_tokens"]);
    setOptional(s, "logprobs", output["logprobs"]);
    setOptional(s, "promptLogprobs", output["prompt_logprobs"]);
    s.stop = [...((request["stop"] ?? []) as string[])];
    s.stopTokenIds = [...tokenIds(request["stop_token_ids"])];
    s.ignoreEos = request["ignore_eos"] === true;
    s.keepStop = request["include_stop_token_in_output"] === true;
    const guided = part(request, "guided_decoding");
    const kind = GUIDES[String(guided["guide_type"])];
    const guide = String(guided["guide"] ?? "");
    // An empty guide switches guiding off, for any JSON too.
    if (kind !== undefined && guide !== "")
      s.constraint = { kind, value: kind === "json_object" ? "true" : guide, choices: [] };
    return {
      requestId: request["request_id"] as string,
      prompt: tokenIds(part(request, "tokenized")["input_token_ids"]),
      sampling: s,
      stream: request["streaming"] === true,
      extra: extras(request),
    };
  },
  refusal(request, { sampling: s, prompt }, { model }) {
    if (request["tokenized"] === undefined || prompt.length === 0) return invalid("tokenized input is required");
    if (s.maxTokens === 0) return invalid("max_tokens must be greater than 0");
    if (float(part(request, "sampling_config"), "beam_width", 1) > 1) return invalid("beam search is not enabled");
    return invalid(usualProblem(s, prompt, model) ?? constraintProblem(s));
  },
  dead: "Executor is not healthy",
};

/** What clients send beside sampling, by wire name. */
function extras(request: PlainMessage): PlainMessage {
  const config = part(request, "sampling_config");
  const output = part(request, "output_config");
  return { beam_width: config["beam_width"], exclude_input_from_output: output["exclude_input_from_output"] };
}

const proto = PROTOS.trtllm;

/** `trtllm.TrtllmService` as TensorRT-LLM serves it. GetTokenizer, Embed and SubscribeKvEvents are declared only. */
export const trtllm: Dialect = {
  name: "trtllm",
  proto,
  file: "trtllm_service.proto",
  healthService: "none",
  methods(host) {
    const { model } = host;
    const coded = codedCalls(proto);
    return {
      Generate: generateCall(host, proto, requests, STYLE, messages),
      HealthCheck: coded("HealthCheckRequest", "HealthCheckResponse", () => ({
        status: host.alive ? "OK" : "Executor is not healthy",
      })),
      Abort: coded("AbortRequest", "AbortResponse", ({ request_id }) => {
        const success = abortRequest(host, request_id as string);
        return { success, message: success ? "Request aborted" : "Request not found" };
      }),
      GetModelInfo: coded("GetModelInfoRequest", "GetModelInfoResponse", () => ({
        model_id: model.servedName,
        max_input_len: model.contextLength - 1,
        max_seq_len: model.contextLength,
        vocab_size: model.vocabSize,
      })),
      GetServerInfo: coded("GetServerInfoRequest", "GetServerInfoResponse", () => ({
        version: "simulated",
        backend: "tensorrt-llm",
        tensor_parallel_size: 1,
        pipeline_parallel_size: 1,
        context_parallel_size: 1,
        world_size: 1,
      })),
    };
  },
};
