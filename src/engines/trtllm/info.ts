/** Control calls of the TensorRT-LLM dialect. */
import { abortEach, type ControlRules } from "../control-rules.ts";
import type { ModelInfo } from "../engine.ts";
import { count, labelsOf, text } from "../info.ts";

export const trtllmControl: ControlRules = {
  abort: abortEach,
  waitsForReasoning: () => undefined,
  healthy(reply) {
    const status = text(reply["status"]).trim();
    return { healthy: status.toLowerCase() === "ok", message: status };
  },
  // The served name where there is one, else the path: nothing says which. Neither EOS ids nor where the tokenizer is.
  model(reply): ModelInfo {
    const id = text(reply["model_id"]);
    return {
      modelPath: id,
      servedModelName: id,
      tokenizerPath: "",
      modelType: "",
      architectures: [],
      isGeneration: true,
      supportsVision: false,
      contextLength: count(reply["max_seq_len"]),
      vocabSize: count(reply["vocab_size"]),
      eosTokenIds: [],
      defaultSampling: {},
    };
  },
  server: (reply) => ({ dataParallelSize: 1, maxRunningRequests: 0, blockSize: 0, labels: labelsOf(reply) }),
};
