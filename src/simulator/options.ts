import { pathProblem } from "../config/checks.ts";
import type { OptionTable, ValuesOf } from "../config/option.ts";

/** Settings of `collie engine`, the simulated engine. */
export const simulatorOptions = {
  dialect: {
    flag: "dialect",
    type: "enum",
    values: ["vllm", "openai"],
    default: "vllm",
    group: "Listener",
    help: "Wire protocol to speak: gRPC of an engine, or OpenAI's API over HTTP.",
  },
  flavor: {
    flag: "flavor",
    type: "enum",
    values: ["vllm", "sglang", "llamacpp", "ollama"],
    default: "vllm",
    group: "Listener",
    help: "With --dialect openai: whose HTTP server to be.",
  },
  apiKey: {
    flag: "api-key",
    type: "string",
    secret: true,
    group: "Listener",
    help: "With --dialect openai: bearer token that /v1 paths ask for.",
  },
  host: { flag: "host", type: "string", default: "127.0.0.1", group: "Listener", help: "Address to listen on." },
  port: {
    flag: "port",
    type: "integer",
    default: 50051,
    min: 0,
    max: 65535,
    group: "Listener",
    help: "Port of the engine's server; 0 picks a free one.",
  },
  statsPort: {
    flag: "stats-port",
    type: "integer",
    default: 0,
    min: 0,
    max: 65535,
    group: "Listener",
    help: "Port on 127.0.0.1 with /stats and /requests as JSON, and where faults are set; 0 picks a free one.",
  },
  shutdownGracePeriodSecs: {
    flag: "shutdown-grace-period-secs",
    type: "number",
    default: 10,
    min: 0,
    group: "Listener",
    help: "How long running requests may go on after SIGTERM, in seconds.",
  },
  modelPath: {
    flag: "model-path",
    aliases: ["model"],
    type: "string",
    check: pathProblem,
    group: "Model",
    help: "Folder with the tokenizer and configuration to pretend to serve (default: a built-in one).",
  },
  servedModelName: {
    flag: "served-model-name",
    type: "string",
    group: "Model",
    help: "Name of the model (default: the folder's name).",
  },
  contextLength: {
    flag: "context-length",
    type: "integer",
    min: 2,
    group: "Model",
    help: "Tokens of prompt and output together (default: from the model's configuration).",
  },
  vocabSize: {
    flag: "vocab-size",
    type: "integer",
    min: 1,
    group: "Model",
    help: "Size of the vocabulary with its padding (default: from the model's configuration).",
  },
  poolingDim: {
    flag: "pooling-dim",
    type: "integer",
    min: 1,
    max: 65536,
    group: "Model",
    help: "Give vectors of that many numbers instead of text: texts that share tokens are near each other.",
  },
  output: {
    flag: "output",
    type: "enum",
    values: ["answer", "echo"],
    default: "answer",
    group: "Output",
    help: "Say a sentence about the prompt, or the prompt's own tokens over and over up to max_tokens.",
  },
  outputTokens: {
    flag: "output-tokens",
    type: "integer",
    min: 1,
    group: "Output",
    help: "Length of an answer before its end token, and of an echo without max_tokens (default: a few sentences; 128).",
  },
  tokensPerMessage: {
    flag: "tokens-per-message",
    type: "integer",
    default: 1,
    min: 1,
    group: "Output",
    help: "Tokens that one streamed message carries.",
  },
  mergeLagging: {
    flag: "merge-lagging",
    type: "boolean",
    group: "Output",
    help: "Send the tokens that a slow reader made wait as one message, as the real engine may, instead of one by one.",
  },
  script: {
    flag: "script",
    type: "string",
    check: pathProblem,
    group: "Output",
    help: "YAML file with rules: which prompts get which answers, paces and faults.",
  },
  speed: {
    flag: "speed",
    type: "string",
    default: "1",
    check: (value: string) =>
      Number.isNaN(parseSpeed(value)) ? 'must be a number from 0 up, or "instant"' : undefined,
    group: "Speed",
    help: 'Factor on the speed of the simulated GPU; 0 or "instant" takes no time at all.',
  },
  prefillTps: {
    flag: "prefill-tps",
    type: "number",
    default: 8000,
    min: 1,
    group: "Speed",
    help: "Prompt tokens computed in a second.",
  },
  decodeBaseMs: {
    flag: "decode-base-ms",
    type: "number",
    default: 6,
    min: 0,
    group: "Speed",
    help: "Time of a decode step without its requests, in milliseconds.",
  },
  decodePerReqMs: {
    flag: "decode-per-req-ms",
    type: "number",
    default: 0.35,
    min: 0,
    group: "Speed",
    help: "Time that each request in the batch adds to a decode step, in milliseconds.",
  },
  prefillChunk: {
    flag: "prefill-chunk",
    type: "integer",
    default: 2048,
    min: 1,
    group: "Speed",
    help: "Prompt tokens that one step computes at most.",
  },
  maxRunning: {
    flag: "max-running",
    type: "integer",
    default: 256,
    min: 1,
    group: "Memory",
    help: "Requests that run at once; the rest waits.",
  },
  kvTokens: {
    flag: "kv-tokens",
    type: "integer",
    default: 524_288,
    min: 16,
    group: "Memory",
    help: "Capacity of the KV cache, in tokens.",
  },
  blockSize: {
    flag: "block-size",
    type: "integer",
    default: 16,
    min: 1,
    group: "Memory",
    help: "Tokens of one KV block.",
  },
  noKvEvents: {
    flag: "no-kv-events",
    type: "boolean",
    group: "Memory",
    help: "Publish no KV events: subscriptions are answered UNIMPLEMENTED.",
  },
  noPrefixCache: {
    flag: "no-prefix-cache",
    type: "boolean",
    group: "Memory",
    help: "Never reuse blocks of earlier prompts.",
  },
} as const satisfies OptionTable;

/** Effective settings of the simulated engine. */
export type SimulatorOptions = ValuesOf<typeof simulatorOptions>;

/** Speed factor of a setting; NaN when it is none. */
export function parseSpeed(value: string): number {
  if (value === "instant") return 0;
  const factor = value.trim() === "" ? Number.NaN : Number(value);
  return factor >= 0 && Number.isFinite(factor) ? factor : Number.NaN;
}
