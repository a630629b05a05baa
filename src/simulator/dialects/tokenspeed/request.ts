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

function sampling(request: PlainMessage): Sampling {
  const params = part(request, "sampling_params");
  const s = defaultSampling();
  s.temperature = float(params, "temperature", 1);
  s.topP = float(params, "top_p", 1);
  s.topK = float(params, "top_k", -1);
  s.minP = float(params, "min_p");
  s.frequencyPenalty = float(params, "frequency_penalty");
  s.presencePenalty = float(params, "presence_penalty");
  s.repetitionPenalty = float(params, "repetition_penalty", 1);
  setOptional(s, "maxTokens", params["max_new_tokens"]);
  s.minTokens = float(params, "min_new_tokens");
  s.stop = [...((params["stop"] ?? []) as string[])];
  s.stopTokenIds = [...tokenIds(params["stop_token_ids"])];
  s.ignoreEos = params["ignore_eos"] === true;
  s.skipSpecialTokens = params["skip_special_tokens"] === true;
  s.spacesBetweenSpecialTokens = params["spaces_between_special_tokens"] === true;
  s.n = float(params, "n") || 1;
  s.logitBias = biases(params["logit_bias"]);
  s.keepStop = params["no_stop_trim"] === true;
  setOptional(s, "seed", params["sampling_seed"]);
  const asked = constraint(params, CONSTRAINTS);
  if (asked) s.constraint = asked;
  // Prompt logprobs are never told.
  if (request["return_logprob"] === true) s.logprobs = float(request, "top_logprobs_num");
  return s;
}

export const tokenspeedRequests: GenerateReader = {
  read(request, { pairing, ranks }): GenerationSpec {
    const { data_parallel_rank: rank, kv_bootstrap_info: pair } = request;
    const room = bootstrapInfo(pair);
    return {
      requestId: request["request_id"] as string,
      prompt: tokenIds(part(request, "tokenized")["input_ids"]),
      sampling: sampling(request),
      stream: request["stream"] === true,
      rank: (rank as number | undefined) ?? rankOfRoom(room, pairing, ranks.size),
      handover: bootstrapHandover(room, pairing),
      extra: {
        ...(rank === undefined ? {} : { data_parallel_rank: rank }),
        ...(pair === undefined ? {} : { kv_bootstrap_info: pair }),
      },
    };
  },
  refusal(request, { sampling: s, prompt }, { model, grammarBackend, ranks, pairing }) {
    if (request["tokenized"] === undefined || prompt.length === 0)
      return invalid("tokenized input_ids must not be empty");
    const lacksRoom = roomProblem(bootstrapInfo(request["kv_bootstrap_info"]), pairing);
    if (lacksRoom !== undefined) return invalid(lacksRoom);
    const rank = request["data_parallel_rank"];
    if (rank !== undefined && !((rank as number) >= 0 && (rank as number) < ranks.size))
      return invalid(`data_parallel_rank ${String(rank)} is out of range [0, ${ranks.size})`);
    return invalid(usualProblem(s, prompt, model) ?? constraintProblem(s, grammarBackend));
  },
  dead: "The engine is not alive",
};
