/** Control calls of the vLLM dialect. */
import { abortTogether, type ControlRules, commonModelInfo, constrainedStart, healthyFlag } from "../control-rules.ts";
import { count, labelsOf } from "../info.ts";

/** Facts that have a place of their own. */
const NO_LABEL = ["dp_size", "max_num_seqs", "block_size"];

export const vllmControl: ControlRules = {
  abort: abortTogether,
  waitsForReasoning: constrainedStart,
  healthy: healthyFlag,
  model: commonModelInfo,
  server(reply) {
    const labels = labelsOf(reply);
    for (const name of NO_LABEL) delete labels[name];
    return {
      dataParallelSize: Math.max(1, count(reply["data_parallel_size"])),
      maxRunningRequests: count(reply["max_num_seqs"]),
      blockSize: count(reply["block_size"]),
      labels,
    };
  },
};
