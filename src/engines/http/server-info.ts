/** What SGLang's `/server_info` tells: the arguments that it was started with, beside each other. */
import type { EngineFacts } from "../facts.ts";
import { Feature } from "../features.ts";

/** Labels under which a worker's publisher of KV events is known, in its specification and among what it tells. */
export const KV_EVENTS_LABEL = "kv_events";
export const KV_REPLAY_LABEL = "kv_events_replay";

type Members = Readonly<Record<string, unknown>>;

/** The facts with what the answer adds; what is of another form is not taken. */
export function withServerInfo(facts: EngineFacts, answer: unknown): EngineFacts {
  if (!isMembers(answer)) return facts;
  const count = (name: string): number => {
    const value = answer[name];
    return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0;
  };
  const published = publishedBy(answer["kv_events_config"]);
  return {
    ...facts,
    features: published[KV_EVENTS_LABEL] === undefined ? facts.features : facts.features | Feature.kvEvents,
    dataParallelSize: count("dp_size") || facts.dataParallelSize,
    maxRunningRequests: count("max_running_requests") || facts.maxRunningRequests,
    blockSize: count("page_size") || facts.blockSize,
    labels: { ...facts.labels, ...published },
  };
}

/** `kv_events_config`, JSON in a string: {"publisher": "zmq", "endpoint": "tcp://*:5557", "replay_endpoint": …}. */
function publishedBy(config: unknown): Readonly<Record<string, string>> {
  if (typeof config !== "string") return {};
  let given: unknown;
  try {
    given = JSON.parse(config);
  } catch {
    return {};
  }
  if (!isMembers(given) || given["publisher"] !== "zmq") return {};
  const { endpoint = "tcp://*:5557", replay_endpoint: replay } = given;
  return {
    ...(typeof endpoint === "string" && { [KV_EVENTS_LABEL]: endpoint }),
    ...(typeof replay === "string" && { [KV_REPLAY_LABEL]: replay }),
  };
}

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);
