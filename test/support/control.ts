import type { Control } from "../../src/fleet/control-link.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { createComputePool } from "../../src/threads/compute-pool.ts";

/** Compute threads for tests; started when they are needed. */
export const testCompute = createComputePool(1, createLogger({ level: "error", json: true }));

/** Control for a serving thread in a test that adds no tokenizers. */
export const testControl: Control = {
  ...testCompute,
  addTokenizer: () => Promise.reject(new Error("no tokenizers are added here")),
  removeTokenizer: async () => false,
};
