import { MOST_SECONDS, type OptionTable } from "./option.ts";
import { POLICY_NAMES } from "./policy-names.ts";
import { parseWorkerAddress, WORKER_ADDRESS_HELP } from "./worker-address.ts";

const addressProblem = (value: string): string | undefined =>
  parseWorkerAddress(value) === undefined ? `must be an address ${WORKER_ADDRESS_HELP}` : undefined;

/** An address, or what follows it: the port of the engine's bootstrap server, or `none`. */
const prefillProblem = (value: string): string | undefined => {
  if (value === "none") return undefined;
  if (/^\d+$/.test(value)) return Number(value) >= 1 && Number(value) <= 65_535 ? undefined : "is not a port";
  return addressProblem(value);
};

const endpointProblem = (value: string): string | undefined =>
  /^tcp:\/\/(\*|[^:/]+|\[[\da-fA-F:]+\]):\d{1,5}$/.test(value) ? undefined : "must be tcp://host:port or tcp://*:port";

const redisProblem = (value: string): string | undefined =>
  /^(redis|valkey)s?:$/.test(URL.parse(value)?.protocol ?? "")
    ? undefined
    : "must be a redis://, rediss://, valkey:// or valkeys:// URL";

/** Who gets a request. Names and defaults are SMG's where it has them. */
export const routingOptions = {
  policy: {
    flag: "policy",
    type: "enum",
    values: POLICY_NAMES,
    default: "cache_aware",
    group: "Routing",
    help: "How a worker is chosen among those that can take a request; a worker's label `policy` says otherwise for its model.",
  },
  cacheThreshold: {
    flag: "cache-threshold",
    type: "number",
    default: 0.3,
    min: 0,
    max: 1,
    group: "Routing",
    help: "Share of a prompt that must match for what is only guessed of a worker's cache to count (cache_aware).",
  },
  balanceAbsThreshold: {
    flag: "balance-abs-threshold",
    type: "integer",
    default: 64,
    min: 0,
    group: "Routing",
    help: "The fleet is out of balance when the most loaded worker has so many requests more than the least loaded (cache_aware).",
  },
  balanceRelThreshold: {
    flag: "balance-rel-threshold",
    type: "number",
    default: 1.5,
    min: 1,
    group: "Routing",
    help: "How many times as many requests the most loaded worker then has, besides (cache_aware).",
  },
  balanceTokenUsageThreshold: {
    flag: "balance-token-usage-threshold",
    type: "number",
    default: 1,
    min: 0,
    max: 1,
    group: "Routing",
    help: "Share of a KV cache in use above which a worker is passed over while others are below; 1 = never (cache_aware).",
  },
  overloadTokenUsageThreshold: {
    flag: "overload-token-usage-threshold",
    type: "number",
    default: 1,
    min: 0,
    max: 1,
    group: "Routing",
    help: "The same, but for whatever the worker's cache holds of the prompt.",
  },
  maxIdleSecs: {
    flag: "max-idle-secs",
    type: "integer",
    default: 14_400,
    min: 1,
    max: MOST_SECONDS,
    group: "Routing",
    help: "How long a routing key that is not used stays with its worker, in seconds (manual).",
  },
  assignmentMode: {
    flag: "assignment-mode",
    type: "enum",
    values: ["random", "min_load", "min_group"],
    default: "random",
    group: "Routing",
    help: "Who gets a routing key that is new: anyone, the least loaded, or the one with the fewest keys (manual).",
  },
  prefixTokenCount: {
    flag: "prefix-token-count",
    type: "integer",
    default: 256,
    min: 1,
    group: "Routing",
    help: "Tokens from the start of a prompt that decide (prefix_hash).",
  },
  prefixHashLoadFactor: {
    flag: "prefix-hash-load-factor",
    type: "number",
    default: 1.25,
    min: 1,
    group: "Routing",
    help: "Load, as a multiple of the mean, above which the next worker on the ring is taken (prefix_hash).",
  },
  leastLoadKvPressureWeight: {
    flag: "least-load-kv-pressure-weight",
    type: "number",
    default: 0.15,
    min: 0,
    group: "Routing",
    help: "Weight of a filling KV cache (least_load, cache_aware).",
  },
  leastLoadDefaultThroughput: {
    flag: "least-load-default-throughput",
    type: "number",
    default: 2000,
    min: 1,
    group: "Routing",
    help: "Tokens a second that a worker is taken to do which does not tell (least_load).",
  },
  leastLoadMeanPrefillTokens: {
    flag: "least-load-mean-prefill-tokens",
    type: "integer",
    default: 1024,
    min: 1,
    group: "Routing",
    help: "Tokens that a request is taken for whose prompt is not counted (least_load).",
  },
  bucketAdjustIntervalSecs: {
    flag: "bucket-adjust-interval-secs",
    type: "integer",
    default: 5,
    min: 1,
    max: MOST_SECONDS,
    group: "Routing",
    help: "How often the lengths that part the workers are learnt anew, in seconds (bucket).",
  },
  routingHeaders: {
    flag: "routing-headers",
    type: "boolean",
    group: "Routing",
    help: "Answer with headers that name the worker's id and the tokens of the prompt that its cache held.",
  },
  dpAware: {
    flag: "dp-aware",
    type: "boolean",
    group: "Routing",
    help: "Choose among the data-parallel ranks of workers, not among workers.",
  },
  blockSize: {
    flag: "block-size",
    type: "integer",
    default: 16,
    min: 1,
    max: 1024,
    group: "Prefix index",
    help: "Tokens of a block of KV cache at workers that do not tell.",
  },
  prefixIndexMb: {
    flag: "prefix-index-mb",
    type: "integer",
    default: 64,
    min: 1,
    max: 4096,
    group: "Prefix index",
    help: "Most memory of the index of what workers have cached, in MB.",
  },
  kvEvents: {
    flag: "kv-events",
    type: "boolean",
    default: true,
    group: "Prefix index",
    help: "Receive the workers' own word of what they have cached.",
  },
  kvEventsEndpoint: {
    flag: "kv-events-endpoint",
    type: "string",
    check: endpointProblem,
    group: "Prefix index",
    help: "ZeroMQ address at which HTTP workers publish KV events: tcp://host:port, or tcp://*:port for each worker's own host. A worker's label `kv_events` says otherwise.",
  },
  kvEventsReplayEndpoint: {
    flag: "kv-events-replay-endpoint",
    type: "string",
    check: endpointProblem,
    group: "Prefix index",
    help: "The same for the address that repeats events that were missed; label `kv_events_replay`.",
  },
  routingRedisUrl: {
    flag: "routing-redis-url",
    type: "string",
    secret: true,
    check: redisProblem,
    group: "Prefix index",
    help: "Redis or Valkey through which several gateways share what they guess of the workers' caches.",
  },
  pdDisaggregation: {
    flag: "pd-disaggregation",
    type: "boolean",
    group: "Disaggregation",
    help: "Serve from workers that prefill and workers that decode; implied by --prefill and --decode.",
  },
  prefill: {
    flag: "prefill",
    type: "strings",
    check: prefillProblem,
    group: "Disaggregation",
    help: "Workers that prefill, each with the port of its bootstrap server behind it, or none: --prefill grpc://a:20000 8998.",
  },
  decode: {
    flag: "decode",
    type: "strings",
    check: addressProblem,
    group: "Disaggregation",
    help: "Workers that decode.",
  },
  prefillPolicy: {
    flag: "prefill-policy",
    type: "enum",
    values: POLICY_NAMES,
    group: "Disaggregation",
    help: "Policy among the workers that prefill; --policy, unless given.",
  },
  decodePolicy: {
    flag: "decode-policy",
    type: "enum",
    values: POLICY_NAMES,
    group: "Disaggregation",
    help: "Policy among the workers that decode; least_load, unless given.",
  },
} as const satisfies OptionTable;
