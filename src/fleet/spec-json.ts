/** What is said of a worker as JSON: bodies of the workers' API, entries of a worker file. Names are SMG's. */
import { SUPPORTED_DIALECTS } from "../engines/dialects.ts";
import { HTTP_RUNTIMES } from "../engines/http/models.ts";
import { InvalidRequestError } from "../errors.ts";
import type { WorkerHealth, WorkerSpec } from "./worker-spec.ts";
import { workerAddress } from "./worker-url.ts";

type Json = Readonly<Record<string, unknown>>;

/** What may be changed of a worker that goes on. */
export type WorkerPatch = Pick<WorkerSpec, "priority" | "cost" | "labels" | "apiKey" | "health">;

const ROLES = ["regular", "prefill", "decode", "encode"] as const;
const MODES = ["http", "grpc"] as const;
/** SMG's, and what HTTP servers are found to be: what is shown may be sent back. */
const RUNTIME_TYPES: readonly string[] = [
  ...new Set([...SUPPORTED_DIALECTS, ...HTTP_RUNTIMES, "external", "unspecified"]),
];
const HEALTH = {
  timeout_secs: "timeoutSecs",
  check_interval_secs: "checkIntervalSecs",
  success_threshold: "successThreshold",
  failure_threshold: "failureThreshold",
} as const;
/** `drain_settle_secs` of SMG's is taken, and means nothing: a worker leaves when it is idle. */
const HEALTH_KNOWN: ReadonlySet<string> = new Set([
  ...Object.keys(HEALTH),
  "endpoint",
  "disable_health_check",
  "drain_settle_secs",
]);

/** Of numbers that nothing bounds by its meaning: 32 bits. */
const MOST = 2 ** 32 - 1;
/** Members that are kept and shown; of these `kv_connector` and `kv_engine_id` are gone by, as if the engine had told them. */
const KEPT: Readonly<Record<string, "text" | "object" | readonly [least: number, most: number]>> = {
  provider: "text",
  dp_base_url: "text",
  dp_rank: [0, MOST],
  dp_size: [1, MOST],
  kv_connector: "text",
  kv_role: "text",
  kv_engine_id: "text",
  kv_block_size: [1, MOST],
  http_pool: "object",
  resilience: "object",
  max_connection_attempts: [0, MOST],
  load_monitor_interval_secs: [0, MOST],
  multimodal_tensor_transport: "text",
  multimodal_shm_min_bytes: [0, Number.MAX_SAFE_INTEGER],
  zmq_handshake_address: "text",
};
/** Members of a worker as it is shown: who changes what was shown and sends it back may leave them in. */
const SHOWN = ["id", "model_id", "is_healthy", "status", "load", "job_status"] as const;
const PATCHED = ["priority", "cost", "labels", "api_key", "health"] as const;
const KNOWN: ReadonlySet<string> = new Set([
  "url",
  "models",
  "worker_type",
  "connection_mode",
  "runtime_type",
  "runtime",
  "bootstrap_port",
  ...PATCHED,
  ...Object.keys(KEPT),
  ...SHOWN,
]);

/** A worker by its JSON, or by its address alone. Throws InvalidRequestError that names the member. */
export function parseSpec(value: unknown): WorkerSpec {
  if (typeof value === "string") return { url: checkedUrl(value) };
  const body = objectOf(value, "");
  for (const name of Object.keys(body)) if (!KNOWN.has(name)) throw wrong(name, "is unknown");
  const mode = oneOf(body, "connection_mode", MODES);
  const runtime = oneOf(body, "runtime_type", RUNTIME_TYPES) ?? oneOf(body, "runtime", RUNTIME_TYPES);
  if (!given(body["url"])) throw wrong("url", "is missing");
  const further = keptOf(body);
  return withoutAbsent({
    url: checkedUrl(withScheme(text(body, "url") ?? "", mode)),
    models: modelNames(body["models"]),
    workerType: oneOf(body, "worker_type", ROLES),
    runtime: runtime === "unspecified" ? undefined : runtime,
    bootstrapPort: integer(body, "bootstrap_port", 1, 65535),
    ...patchOf(body),
    further: Object.keys(further).length === 0 ? undefined : further,
  });
}

/** Whether a worker's JSON says that it has no key, where an absent one says nothing. */
export const isKeyless = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "api_key" in value && value.api_key === null;

/** The body of a PATCH. Throws InvalidRequestError. */
export function parsePatch(value: unknown): WorkerPatch {
  const body = objectOf(value, "");
  const names: readonly string[] = PATCHED;
  for (const name of Object.keys(body))
    if (!names.includes(name)) throw wrong(name, `cannot be changed: only ${names.join(", ")} can`);
  return withoutAbsent(patchOf(body));
}

/** What is said of a worker, without its key. */
export function specJson(spec: WorkerSpec): Json {
  const { health = {} } = spec;
  const told = Object.entries(HEALTH).map(([name, key]) => [name, health[key]]);
  return withoutAbsent({
    url: spec.url,
    worker_type: spec.workerType ?? "regular",
    labels: spec.labels ?? {},
    priority: spec.priority ?? 50,
    cost: spec.cost ?? 1,
    bootstrap_port: spec.bootstrapPort,
    health: withoutAbsent({
      ...Object.fromEntries(told),
      endpoint: health.endpoint,
      disable_health_check: health.disable,
    }),
    ...spec.further,
  });
}

function patchOf(body: Json): WorkerPatch {
  return {
    priority: number(body, "priority"),
    cost: number(body, "cost"),
    labels: labels(body["labels"]),
    apiKey: keyOf(body),
    health: healthOf(body["health"]),
  };
}

function keptOf(body: Json): Json {
  const members = Object.entries(KEPT).filter(([name]) => given(body[name]));
  return Object.fromEntries(
    members.map(([name, form]) => {
      if (form === "text") return [name, text(body, name)];
      if (form === "object") return [name, objectOf(body[name], name)];
      return [name, integer(body, name, ...form)];
    }),
  );
}

/** It is sent in a header. */
function keyOf(body: Json): string | undefined {
  const key = text(body, "api_key");
  if (key !== undefined && !/^[!-~]+$/.test(key)) throw wrong("api_key", "must be of visible ASCII characters");
  return key;
}

function healthOf(value: unknown): WorkerHealth | undefined {
  if (!given(value)) return undefined;
  const body = objectOf(value, "health");
  for (const name of Object.keys(body)) if (!HEALTH_KNOWN.has(name)) throw wrong(`health.${name}`, "is unknown");
  const disable = body["disable_health_check"];
  if (given(disable) && typeof disable !== "boolean")
    throw wrong("health.disable_health_check", "must be true or false");
  const counts = Object.entries(HEALTH).map(([name, key]) => [key, integer(body, name, 1, 2_000_000, "health.")]);
  const endpoint = text(body, "endpoint", "health.");
  if (endpoint !== undefined && !/^\/[!-~]*$/.test(endpoint)) throw wrong("health.endpoint", "must be a path: /...");
  return withoutAbsent({ ...Object.fromEntries(counts), endpoint, disable: disable ?? undefined });
}

/** Cards or names: a card's id, then its aliases. */
function modelNames(value: unknown): readonly string[] | undefined {
  if (!given(value)) return undefined;
  if (!Array.isArray(value)) throw wrong("models", "must be a list");
  const names = value.flatMap((entry: unknown, at): unknown[] => {
    if (typeof entry === "string") return [entry];
    const { id, aliases = [] } = objectOf(entry, `models[${at}]`);
    return [id, ...(Array.isArray(aliases) ? aliases : [undefined])];
  });
  if (!names.every((name): name is string => typeof name === "string" && name !== ""))
    throw wrong("models", "must be names, or cards with an id");
  return names.length === 0 ? undefined : names;
}

function labels(value: unknown): Readonly<Record<string, string>> | undefined {
  if (!given(value)) return undefined;
  const body = objectOf(value, "labels");
  for (const [name, label] of Object.entries(body))
    if (typeof label !== "string") throw wrong(`labels.${name}`, "must be a string");
  return body as Readonly<Record<string, string>>;
}

function checkedUrl(url: string): string {
  workerAddress(url);
  return url;
}

const withScheme = (url: string, mode: string | undefined): string =>
  mode === undefined || url.includes("://") || url === "" ? url : `${mode}://${url}`;

/** JSON that clients write may say null for what is absent. */
const given = (value: unknown): boolean => value !== undefined && value !== null;

const wrong = (param: string, problem: string) => new InvalidRequestError(`${param} ${problem}`, { param });

function objectOf(value: unknown, name: string): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw name === "" ? new InvalidRequestError("A worker must be an object") : wrong(name, "must be an object");
  return value as Json;
}

function text(body: Json, name: string, where = ""): string | undefined {
  const value = body[name];
  if (!given(value)) return undefined;
  if (typeof value !== "string" || value === "") throw wrong(where + name, "must be a text");
  return value;
}

function number(body: Json, name: string, least = 0): number | undefined {
  const value = body[name];
  if (!given(value)) return undefined;
  if (typeof value !== "number" || !Number.isFinite(value) || value < least)
    throw wrong(name, `must be a number of at least ${least}`);
  return value;
}

function integer(body: Json, name: string, least: number, most: number, where = ""): number | undefined {
  const value = body[name];
  if (!given(value)) return undefined;
  if (!Number.isInteger(value) || Number(value) < least || Number(value) > most)
    throw wrong(where + name, `must be a whole number from ${least} to ${most}`);
  return Number(value);
}

function oneOf<T extends string>(body: Json, name: string, values: readonly T[]): T | undefined {
  const value = body[name];
  if (!given(value)) return undefined;
  const found = values.find((one) => one === value);
  if (found === undefined) throw wrong(name, `must be one of ${values.join(", ")}`);
  return found;
}

const withoutAbsent = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T;
