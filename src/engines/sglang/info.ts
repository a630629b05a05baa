/** Control calls of the SGLang dialect. */
import { abortEach, type ControlRules, commonModelInfo, constrainedStart, healthyFlag } from "../control-rules.ts";
import { count, labelsOfArguments, struct, text } from "../info.ts";

/** Launch arguments that are labels. */
const LABELS = [
  "model_path",
  "served_model_name",
  "tokenizer_path",
  "tp_size",
  "dp_size",
  "pp_size",
  "context_length",
  "max_total_tokens",
  "max_running_requests",
  "load_balance_method",
  "disaggregation_mode",
  "disaggregation_bootstrap_port",
  "is_embedding",
  "vocab_size",
  "weight_version",
  "engine_reasoning_parser",
  "constrained_decoding_start",
  "grammar_backend",
  "pairing_protocol",
  "mm_item_limits",
  "page_size",
];

export const sglangControl: ControlRules = {
  abort: abortEach,
  // It waits only where a request says that the prompt ends in reasoning, which is said to those that announce it.
  waitsForReasoning: (labels) => constrainedStart(labels) === true,
  healthy: healthyFlag,
  modelNeedsServer: true,
  model(reply, server) {
    // max_context_length is what the KV cache holds, not what the model can: 0 leaves that to the model's own files.
    const contextLength = count(struct(server["server_args"])["context_length"]);
    return { ...commonModelInfo(reply), contextLength };
  },
  server(reply) {
    const given = struct(reply["server_args"]);
    const labels = labelsOfArguments(given, LABELS);
    const version = text(reply["sglang_version"]);
    return {
      dataParallelSize: Math.max(1, count(given["dp_size"])),
      maxRunningRequests: count(given["max_running_requests"]),
      blockSize: count(given["page_size"]),
      labels: version === "" ? labels : { ...labels, version },
    };
  },
  loadsAsk: { include: ["core"] },
  tellsUncached: true,
};
