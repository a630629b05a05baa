/** Control calls of the TokenSpeed dialect. */
import { abortEach, type ControlRules, commonModelInfo, healthyFlag } from "../control-rules.ts";
import { count, labelsOfArguments, struct, text } from "../info.ts";

/** Launch arguments that are labels. */
const LABELS = [
  "model",
  "served_model_name",
  "tokenizer",
  "tp_size",
  "dp_size",
  "pp_size",
  "context_length",
  "max_total_tokens",
  "max_running_requests",
  "load_balance_method",
  "disaggregation_bootstrap_port",
  "is_embedding",
  "vocab_size",
  "weight_version",
  "engine_reasoning_parser",
  "constrained_decoding_start",
  "grammar_backend",
  "pairing_protocol",
  "page_size",
];

export const tokenspeedControl: ControlRules = {
  abort: abortEach,
  // It always begins at the first token; a bare JSON schema it wraps itself.
  waitsForReasoning: () => false,
  healthy: healthyFlag,
  model: (reply) => ({ ...commonModelInfo(reply), isGeneration: true }),
  server(reply) {
    const given = struct(reply["server_args"]);
    const namespace = text(struct(reply["scheduler_info"])["shm_namespace_id"]);
    const version = text(reply["tokenspeed_version"]);
    const decoding = text(reply["constrained_decoding"]);
    return {
      dataParallelSize: Math.max(1, count(given["dp_size"])),
      maxRunningRequests: count(given["max_running_requests"]),
      blockSize: count(given["page_size"]),
      labels: {
        ...labelsOfArguments(given, LABELS),
        ...(namespace !== "" && { shm_namespace_id: namespace }),
        ...(version !== "" && { version }),
        ...(decoding !== "" && { constrained_decoding: decoding }),
      },
    };
  },
};
