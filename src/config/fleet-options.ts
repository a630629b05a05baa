import { MOST_SECONDS, type OptionTable } from "./option.ts";

const LABEL = /^(?:(?=[^/]{1,253}\/)[a-z0-9]([-.a-z0-9]*[a-z0-9])?\/)?[a-z0-9]([-\w.]{0,61}[a-z0-9])?$/i;
const LABEL_VALUE = /^([a-z0-9]([-\w.]{0,61}[a-z0-9])?)?$/i;

/** Format: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set */
function selectorProblem(value: string): string | undefined {
  const [, label = "", labelValue] = /^([^=]*)=(.*)$/.exec(value) ?? [];
  if (labelValue === undefined) return "must be label=value";
  if (!LABEL.test(label)) return `has no label before the =, such as app or example.com/app`;
  return LABEL_VALUE.test(labelValue) ? undefined : "has something behind the = that no label can be";
}

/** Where workers come from besides the command line. Names and defaults are SMG's where it has them, here as below. */
export const discoveryOptions = {
  workerFile: {
    flag: "worker-file",
    type: "string",
    group: "Discovery",
    help: "YAML or JSON file with the list `workers`, watched for changes.",
  },
  dnsRefreshSecs: {
    flag: "dns-refresh-secs",
    type: "integer",
    default: 30,
    min: 1,
    max: 86_400,
    group: "Discovery",
    help: "How often the names of dns:// workers are looked up, in seconds.",
  },
  dnsKeepSecs: {
    flag: "dns-keep-secs",
    type: "integer",
    default: 300,
    min: 0,
    max: MOST_SECONDS,
    group: "Discovery",
    help: "How long workers stay whose name cannot be looked up any more, in seconds.",
  },
  serviceDiscovery: {
    flag: "service-discovery",
    type: "boolean",
    group: "Discovery",
    help: "Find workers among the pods of Kubernetes.",
  },
  selector: {
    flag: "selector",
    type: "strings",
    check: selectorProblem,
    group: "Discovery",
    help: "Labels of the pods that are workers: label=value, all of them.",
  },
  prefillSelector: {
    flag: "prefill-selector",
    type: "strings",
    check: selectorProblem,
    group: "Discovery",
    help: "Labels of pods that prefill.",
  },
  decodeSelector: {
    flag: "decode-selector",
    type: "strings",
    check: selectorProblem,
    group: "Discovery",
    help: "Labels of pods that decode.",
  },
  encodeSelector: {
    flag: "encode-selector",
    type: "strings",
    check: selectorProblem,
    group: "Discovery",
    help: "Labels of pods that encode media.",
  },
  serviceDiscoveryPort: {
    flag: "service-discovery-port",
    type: "integer",
    default: 80,
    min: 1,
    max: 65535,
    group: "Discovery",
    help: "Port of a pod's engine, unless its annotation smg.ai/worker-ports names others.",
  },
  serviceDiscoveryNamespace: {
    flag: "service-discovery-namespace",
    type: "string",
    group: "Discovery",
    help: "Namespace to look in; without it all of them.",
  },
  serviceDiscoveryScheme: {
    flag: "service-discovery-scheme",
    type: "enum",
    values: ["auto", "grpc", "http"],
    default: "auto",
    group: "Discovery",
    help: "What engines in pods and behind dns:// names speak; auto asks each.",
  },
  modelIdFrom: {
    flag: "model-id-from",
    type: "string",
    group: "Discovery",
    check: (value: string) =>
      /^(namespace|(label|annotation):.+)$/.test(value) ? undefined : "must be namespace, label:KEY or annotation:KEY",
    help: "Where a pod names its model: namespace, label:KEY or annotation:KEY; without it the engine is asked.",
  },
} as const satisfies OptionTable;

/** How workers are talked to. */
export const workerOptions = {
  workerApiKey: {
    flag: "worker-api-key",
    type: "string",
    secret: true,
    group: "Workers",
    help: "Key that HTTP workers want, unless they have one of their own.",
  },
  workerCaCert: {
    flag: "worker-ca-cert",
    aliases: ["ca-cert-paths"],
    type: "strings",
    group: "Workers",
    help: "PEM files of the CAs that grpcs:// and https:// workers are believed by; without them the system's.",
  },
  workerClientCert: {
    flag: "worker-client-cert",
    aliases: ["client-cert-path"],
    type: "string",
    group: "Workers",
    help: "PEM file of the certificate that the gateway shows to grpcs:// and https:// workers.",
  },
  workerClientKey: {
    flag: "worker-client-key",
    aliases: ["client-key-path"],
    type: "string",
    group: "Workers",
    help: "PEM file of its key.",
  },
  engineConnections: {
    flag: "engine-connections",
    type: "integer",
    default: 1,
    min: 1,
    max: 64,
    group: "Workers",
    help: "Connections of each serving thread to each gRPC worker; a request goes on the one with the fewest.",
  },
  loadMonitorInterval: {
    flag: "load-monitor-interval",
    type: "integer",
    default: 10,
    min: 1,
    max: MOST_SECONDS,
    group: "Workers",
    help: "How often workers are asked for their load, in seconds.",
  },
  engineMetrics: {
    flag: "engine-metrics",
    type: "boolean",
    group: "Workers",
    help: "Show at /metrics what engines tell of their load, rank by rank.",
  },
} as const satisfies OptionTable;

/** How they are watched, and how they leave. */
export const healthOptions = {
  healthCheckEndpoint: {
    flag: "health-check-endpoint",
    type: "string",
    default: "/health",
    group: "Health",
    check: (value: string) => (value.startsWith("/") ? undefined : "must be a path"),
    help: "Path that is asked of HTTP workers.",
  },
  healthCheckGeneration: {
    flag: "health-check-generation",
    type: "boolean",
    group: "Health",
    help: "Also use health checks by which an engine generates a token (SGLang, TokenSpeed).",
  },
  removeUnhealthyWorkers: {
    flag: "remove-unhealthy-workers",
    type: "boolean",
    group: "Health",
    help: "Take workers out of the fleet that have failed for good.",
  },
  workerStallSecs: {
    flag: "worker-stall-secs",
    type: "integer",
    default: 30,
    min: 0,
    max: MOST_SECONDS,
    group: "Health",
    help: "Time without any progress of its requests after which a worker is examined, in seconds; 0 = never.",
  },
  drainTimeoutSecs: {
    flag: "drain-timeout-secs",
    type: "integer",
    default: 180,
    min: 0,
    max: MOST_SECONDS,
    group: "Health",
    help: "How long the requests of a worker that is to leave may go on, in seconds.",
  },
} as const satisfies OptionTable;
