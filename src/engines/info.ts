/** What engines tell of themselves, as far as the dialects' replies are alike. */
import type { PlainMessage } from "../protobuf/codec.ts";

/** Sampling defaults that the gateway applies for the engine. */
const DEFAULT_KEYS = new Set(["temperature", "top_p", "top_k", "min_p", "repetition_penalty"]);

/** The numbers of a JSON text with sampling defaults; a text that is no JSON object counts as none. */
export function defaultSampling(json: string): Record<string, number> {
  const defaults: Record<string, number> = {};
  let parsed: unknown;
  try {
    parsed = json === "" ? {} : JSON.parse(json);
  } catch {
    return defaults;
  }
  if (typeof parsed !== "object" || parsed === null) return defaults;
  for (const [key, value] of Object.entries(parsed))
    if (DEFAULT_KEYS.has(key) && typeof value === "number" && Number.isFinite(value)) defaults[key] = value;
  return defaults;
}

/** Short names of parallel sizes, and what is of the moment and no label. */
const LABEL_NAMES: Readonly<Record<string, string>> = {
  tensor_parallel_size: "tp_size",
  pipeline_parallel_size: "pp_size",
  context_parallel_size: "cp_size",
  data_parallel_size: "dp_size",
};
const NO_LABEL = new Set([
  "active_requests",
  "is_paused",
  "last_receive_timestamp",
  "uptime_seconds",
  "server_type",
  "start_time",
]);

/** SMG's labels of a reply: every text, number, flag and list that says something, under its name on the wire. */
export function labelsOf(reply: PlainMessage): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [key, value] of Object.entries(reply)) {
    if (NO_LABEL.has(key) || value === undefined || value === null || value === "" || value === 0) continue;
    if (Array.isArray(value)) {
      if (value.length > 0) labels[LABEL_NAMES[key] ?? key] = JSON.stringify(value);
    } else if (typeof value !== "object") labels[LABEL_NAMES[key] ?? key] = String(value);
  }
  return labels;
}

/** The labels that are chosen from the launch arguments of SGLang and TokenSpeed. */
export function labelsOfArguments(given: PlainMessage, keys: readonly string[]): Record<string, string> {
  return labelsOf(Object.fromEntries(keys.map((key) => [key, given[key]])));
}

export const text = (value: unknown): string => (typeof value === "string" ? value : "");
export const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
export const numbers = (value: unknown): number[] =>
  Array.isArray(value) ? value.filter((item): item is number => typeof item === "number") : [];
/** A count; 0 for what is none. */
export const count = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0;
/** A Struct of a reply; empty where there is none. */
export const struct = (value: unknown): PlainMessage =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as PlainMessage) : {};
