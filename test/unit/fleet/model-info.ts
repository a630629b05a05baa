import type { ModelInfo } from "../../../src/engines/engine.ts";

/** What an engine with Qwen 3 says of its model. */
export const modelInfo = (more: Partial<ModelInfo> = {}): ModelInfo => ({
  modelPath: "/models/qwen",
  servedModelName: "served",
  tokenizerPath: "",
  modelType: "qwen3",
  architectures: [],
  isGeneration: true,
  supportsVision: false,
  contextLength: 0,
  vocabSize: 151936,
  eosTokenIds: [],
  defaultSampling: {},
  ...more,
});
