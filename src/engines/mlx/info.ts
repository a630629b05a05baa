/** Control calls of the MLX dialect. */
import { abortTogether, type ControlRules, commonModelInfo, healthyFlag } from "../control-rules.ts";
import { labelsOf } from "../info.ts";

export const mlxControl: ControlRules = {
  abort: abortTogether,
  waitsForReasoning: () => undefined,
  healthy: healthyFlag,
  // The served name is the path as it was typed.
  model: (reply) => commonModelInfo(reply),
  server: (reply) => ({ dataParallelSize: 1, maxRunningRequests: 0, blockSize: 0, labels: labelsOf(reply) }),
};
