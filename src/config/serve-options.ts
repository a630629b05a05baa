import { isDnsUrl, parseDnsName } from "./dns-name.ts";
import { discoveryOptions, healthOptions, workerOptions } from "./fleet-options.ts";
import { historyOptions } from "./history-options.ts";
import { modelOptions } from "./model-options.ts";
import { MOST_SECONDS, type OptionTable, type ValuesOf } from "./option.ts";
import { resilienceOptions } from "./resilience-options.ts";
import { routingOptions } from "./routing-options.ts";
import { parseWorkerAddress, WORKER_ADDRESS_HELP } from "./worker-address.ts";

function workerUrlProblem(value: string): string | undefined {
  if (isDnsUrl(value))
    return parseDnsName(value) === undefined ? "must be dns://name:port or dns+srv://_service._tcp.name" : undefined;
  return parseWorkerAddress(value) === undefined ? `must be an address ${WORKER_ADDRESS_HELP}` : undefined;
}

function headerNameProblem(name: string): string | undefined {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(name) ? undefined : "is not the name of a header";
}

/** Settings of `collie serve`. Where SMG has a flag of the same meaning, name and default are SMG's. */
export const serveOptions = {
  host: { flag: "host", type: "string", default: "0.0.0.0", group: "Listener", help: "Address to listen on." },
  port: {
    flag: "port",
    type: "integer",
    default: 30000,
    min: 0,
    max: 65535,
    group: "Listener",
    help: "Port to listen on; 0 picks a free one.",
  },
  threads: {
    flag: "threads",
    type: "integer",
    min: 1,
    max: 64,
    group: "Listener",
    help: "Serving threads (default: the cores this process may use, 8 at most).",
  },
  maxPayloadSize: {
    flag: "max-payload-size",
    type: "integer",
    default: 536_870_912,
    min: 1,
    group: "Listener",
    help: "Largest request body, in bytes.",
  },
  corsAllowedOrigins: {
    flag: "cors-allowed-origins",
    type: "strings",
    group: "Listener",
    help: "Origins that browsers may call from; none given allows every origin.",
  },
  warmup: {
    flag: "warmup",
    type: "boolean",
    default: true,
    group: "Listener",
    help: "Rehearse chats inside the process once a model is ready, so that the first clients do not wait for what compiles.",
  },
  requestTimeoutSecs: {
    flag: "request-timeout-secs",
    type: "integer",
    default: 0,
    min: 0,
    max: MOST_SECONDS,
    group: "Requests",
    help: "Longest time one request may take, in seconds; 0 = as long as it likes.",
  },
  requestIdHeaders: {
    flag: "request-id-headers",
    type: "strings",
    default: ["x-request-id", "x-correlation-id", "x-trace-id", "request-id"],
    check: headerNameProblem,
    group: "Requests",
    help: "Headers to take a request's id from, in order.",
  },
  shutdownGracePeriodSecs: {
    flag: "shutdown-grace-period-secs",
    type: "integer",
    default: 180,
    min: 0,
    max: MOST_SECONDS,
    group: "Requests",
    help: "How long running requests may go on after SIGTERM, in seconds.",
  },
  sseHeartbeatSecs: {
    flag: "sse-heartbeat-secs",
    type: "integer",
    default: 15,
    min: 1,
    max: MOST_SECONDS,
    group: "Requests",
    help: "Silence after which a stream gets a comment line, in seconds.",
  },
  apiKey: {
    flag: "api-key",
    type: "string",
    secret: true,
    group: "Security",
    help: "Key that clients must send; without it everybody may call.",
  },
  workerUrls: {
    flag: "worker-urls",
    type: "strings",
    check: workerUrlProblem,
    group: "Workers",
    help: "Engines to serve from: grpc(s)://host:port, http(s)://host:port, or host:port, where both are tried; dns://name:port and dns+srv://_service._tcp.name for all that is behind a name.",
  },
  engineTransport: {
    flag: "engine-transport",
    type: "enum",
    values: ["framing", "grpc-js"],
    default: "framing",
    group: "Workers",
    help: "Who reads the token streams: our own framing, or @grpc/grpc-js for every call.",
  },
  engineKeepaliveSecs: {
    flag: "engine-keepalive-secs",
    type: "integer",
    default: 300,
    min: 0,
    max: MOST_SECONDS,
    group: "Workers",
    help: "Interval of HTTP/2 pings to engines, in seconds; 0 sends none. Old engines cut connections that ping more often than every 300 s.",
  },
  workerStartupTimeoutSecs: {
    flag: "worker-startup-timeout-secs",
    type: "integer",
    default: 1800,
    min: 1,
    max: MOST_SECONDS,
    group: "Workers",
    help: "How long a worker may take to answer for the first time, in seconds.",
  },
  workerStartupCheckInterval: {
    flag: "worker-startup-check-interval",
    type: "integer",
    default: 30,
    min: 1,
    max: MOST_SECONDS,
    group: "Workers",
    help: "Longest pause between two tries to reach a starting worker, in seconds.",
  },
  ...workerOptions,
  healthFailureThreshold: {
    flag: "health-failure-threshold",
    type: "integer",
    default: 3,
    min: 1,
    group: "Health",
    help: "Failed checks in a row that make a worker unhealthy.",
  },
  healthSuccessThreshold: {
    flag: "health-success-threshold",
    type: "integer",
    default: 2,
    min: 1,
    group: "Health",
    help: "Good checks in a row that make it healthy again.",
  },
  healthCheckTimeoutSecs: {
    flag: "health-check-timeout-secs",
    type: "integer",
    default: 5,
    min: 1,
    max: MOST_SECONDS,
    group: "Health",
    help: "Time limit of one check, in seconds.",
  },
  healthCheckIntervalSecs: {
    flag: "health-check-interval-secs",
    type: "integer",
    default: 60,
    min: 1,
    max: MOST_SECONDS,
    group: "Health",
    help: "Time between two checks, in seconds.",
  },
  disableHealthCheck: {
    flag: "disable-health-check",
    type: "boolean",
    group: "Health",
    help: "Never check workers after they have started.",
  },
  ...healthOptions,
  ...discoveryOptions,
  ...resilienceOptions,
  ...routingOptions,
  ...modelOptions,
  stateDir: {
    flag: "state-dir",
    type: "string",
    group: "Model",
    help: "Folder for caches (default: $CACHE_DIRECTORY, $STATE_DIRECTORY, $XDG_CACHE_HOME/collie or ~/.cache/collie) and for what must last (default: $STATE_DIRECTORY, $XDG_STATE_HOME/collie or ~/.local/state/collie).",
  },
  tokenizerCacheEnableL0: {
    flag: "tokenizer-cache-enable-l0",
    type: "boolean",
    default: true,
    group: "Tokenizer cache",
    help: "Keep the token ids of whole prompts.",
  },
  tokenizerCacheL0MaxEntries: {
    flag: "tokenizer-cache-l0-max-entries",
    type: "integer",
    default: 10_000,
    min: 0,
    max: 10_000_000,
    group: "Tokenizer cache",
    help: "Most whole prompts that are kept for each model.",
  },
  tokenizerCacheEnableL1: {
    flag: "tokenizer-cache-enable-l1",
    type: "boolean",
    default: true,
    group: "Tokenizer cache",
    help: "Know the beginnings of prompts, so that only what is new is encoded.",
  },
  tokenizerCacheL1MaxMemory: {
    flag: "tokenizer-cache-l1-max-memory",
    type: "integer",
    default: 52_428_800,
    min: 0,
    max: 2_147_483_648,
    group: "Tokenizer cache",
    help: "Bytes of texts and token ids that both levels keep for each model, shared by all threads.",
  },
  tokenizerCacheVerify: {
    flag: "tokenizer-cache-verify",
    type: "number",
    default: 0.001,
    min: 0,
    max: 1,
    group: "Tokenizer cache",
    help: "Share of the hits that are encoded anew and compared; a difference switches the model's cache off.",
  },
  ...historyOptions,
  prometheusPort: {
    flag: "prometheus-port",
    type: "integer",
    min: 0,
    max: 65535,
    group: "Metrics",
    help: "Port for GET /metrics in Prometheus' format, 29000 in SMG; without it there is none, and 0 picks a free one.",
  },
  prometheusHost: {
    flag: "prometheus-host",
    type: "string",
    default: "0.0.0.0",
    group: "Metrics",
    help: "Address of the metrics port.",
  },
  logLevel: {
    flag: "log-level",
    type: "enum",
    values: ["debug", "info", "warn", "error"],
    default: "info",
    group: "Logging",
    help: "Least important messages to log.",
  },
  logJson: { flag: "log-json", type: "boolean", group: "Logging", help: "Log one JSON object a line." },
} as const satisfies OptionTable;

/** Settings of `collie demo`: its worker is its own. */
export const { workerUrls: _, ...demoOptions } = serveOptions;

/** Effective settings of `collie serve`, frozen. */
export type ServeConfig = ValuesOf<typeof serveOptions>;
