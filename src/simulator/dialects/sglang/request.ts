import { GrpcStatus } from "../../../engines/grpc-error.ts";
import type { PlainMessage } from "../../../protobuf/codec.ts";
import type { GenerationSpec } from "../../generation.ts";
import { bootstrapHandover, bootstrapInfo, rankOfRoom, roomProblem } from "../../handover/bootstrap.ts";
import { defaultSampling, type Sampling } from "../../sampling.ts";
import {
  biases,
  constraint,
  constraintProblem,
  float,
  type GenerateReader,
  invalid,
  part,
  setOptional,
  tokenIds,
  usualProblem,
} from "../generate.ts";

const CONSTRAINTS = {
  regex: "regex",
  json_schema: "json_schema",
  ebnf_grammar: "grammar",
  structural_tag: "structural_tag",
} as const;

/** SamplingParams has no presence: what is absent is 0. New servicers put neutral values for some zeros, never for the temperature. */
function sampling(request: PlainMessage, isOld: boolean): Sampling {
  const params = part(request, "sampling_params");
  const s = defaultSampling();
  s.temperature = float(params, "temperature");
  s.topP = float(params, "top_p") || (isOld ? 0 : 1);
  s.topK = float(params, "top_k") || (isOld ? 0 : -1);
  s.minP = float(params, "min_p");
  s.frequencyPenalty = float(params, "frequency_penalty");
  s.presencePenalty = float(params, "presence_penalty");
  s.repetitionPenalty = float(params, "repetition_penalty") || (isOld ? 0 : 1);
  setOptional(s, "maxTokens", params["max_new_tokens"]);
  s.minTokens = float(params, "min_new_tokens");
  s.stop = [...((params["stop"] ?? []) as string[])];
  s.stopTokenIds = [...tokenIds(params["stop_token_ids"])];
  s.skipSpecialTokens = params["skip_special_tokens"] === true;
  s.spacesBetweenSpecialTokens = params["spaces_between_special_tokens"] === true;
  s.ignoreEos = params["ignore_eos"] === true;
  s.keepStop = params["no_stop_trim"] === true;
  s.n = float(params, "n") || 1;
  s.logitBias = biases(params["logit_bias"]);
  const asked = constraint(params, CONSTRAINTS);
  if (asked) s.constraint = asked;
  if (request["return_logprob"] !== true) return s;
  s.logprobs = float(request, "top_logprobs_num");
  s.tokenIdsLogprob = [...tokenIds(request["token_ids_logprob"])];
  const start = float(request, "logprob_start_len");
  if (start >= 0) {
    s.promptLogprobs = s.logprobs;
    s.promptLogprobsFrom = start;
  }
  return s;
}

export const sglangRequests: GenerateReader = {
  read(request, host): GenerationSpec {
    const isOld = host.protocol === "0.4.14";
    const rank = request["data_parallel_rank"];
    const room = bootstrapInfo(request["disaggregated_params"]);
    return {
      requestId: request["request_id"] as string,
      prompt: tokenIds(part(request, "tokenized")["input_ids"]),
      sampling: sampling(request, isOld),
      stream: request["stream"] === true,
      rank: rankOfRoom(room, host.pairing, host.ranks.size),
      handover: bootstrapHandover(room, host.pairing),
      constraintWaits: host.waitsForReasoning && request["require_reasoning"] === true,
      extra: {
        ...(request["disaggregated_params"] === undefined
          ? {}
          : { disaggregated_params: request["disaggregated_params"] }),
        ...(rank === undefined || rank === 0 ? {} : { ignored: ["data_parallel_rank"] }),
        ...(request["require_reasoning"] === true ? { require_reasoning: true } : {}),
      },
    };
  },
  refusal(request, { sampling: s, prompt }, { model, noTokenizer, protocol, grammarBackend, pairing }) {
    if (request["tokenized"] === undefined || prompt.length === 0) return invalid("Tokenized input must be provided");
    if (request["return_hidden_states"] === true && protocol !== "0.4.14")
      return invalid("return_hidden_states is not supported");
    if (model.poolingDim !== undefined) return invalid("This model does not support generation");
    const lacksRoom = roomProblem(bootstrapInfo(request["disaggregated_params"]), pairing);
    if (lacksRoom !== undefined) return invalid(lacksRoom);
    if (noTokenizer && s.stop.length > 0)
      return { status: GrpcStatus.INTERNAL, details: "'NoneType' object has no attribute 'decode'" };
    return invalid(usualProblem(s, prompt, model) ?? constraintProblem(s, grammarBackend));
  },
  dead: "The scheduler is not alive",
};
