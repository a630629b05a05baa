import type { OptionTable } from "../config/option.ts";

/** How an engine does a part of the work, and hands the rest over. */
export const pairOptions = {
  role: {
    flag: "role",
    type: "enum",
    values: ["regular", "prefill", "decode"],
    default: "regular",
    group: "Pair",
    help: "Only prefill, or only decode, with another engine for the rest. With vLLM it goes with --kv-connector.",
  },
  kvConnector: {
    flag: "kv-connector",
    type: "enum",
    values: ["nixl", "mooncake"],
    group: "Pair",
    help: "With vLLM: hand KV over as this connector does.",
  },
  engineId: {
    flag: "engine-id",
    type: "string",
    group: "Pair",
    help: "With --kv-connector: name of the engine among its peers (default: a random one).",
  },
  bootstrapPort: {
    flag: "bootstrap-port",
    type: "integer",
    default: 0,
    min: 0,
    max: 65535,
    group: "Pair",
    help: "Port where other engines fetch KV: SGLang's and TokenSpeed's bootstrap server, a connector's side channel; 0 picks a free one.",
  },
  handoverTimeoutSecs: {
    flag: "handover-timeout-secs",
    type: "number",
    default: 5,
    min: 0,
    group: "Pair",
    help: "How long one engine of a pair waits for the other's request, in seconds.",
  },
  kvLeaseSecs: {
    flag: "kv-lease-secs",
    type: "number",
    default: 30,
    min: 0,
    group: "Pair",
    help: "With --kv-connector: how long blocks wait for being fetched, in seconds.",
  },
  transferTps: {
    flag: "transfer-tps",
    type: "number",
    default: 200_000,
    min: 1,
    group: "Pair",
    help: "Tokens whose KV goes to another engine in a second.",
  },
} as const satisfies OptionTable;
