import { GrpcStatus } from "../../engines/grpc-error.ts";
import { ErrorCode } from "../../http2/frames.ts";
import type { ScriptFault, ScriptRule } from "./rule.ts";

/** A script that can not be used; the message names the key. */
export class ScriptError extends Error {
  override readonly name = "ScriptError";
}

const RULE_KEYS = [
  "contains",
  "matches",
  "text",
  "token_ids",
  "tokens_per_message",
  "finish_reason",
  "logprobs",
  "delay_ms",
  "ms_per_token",
  "fault",
  "times",
  "probability",
];
/** What a fault that is set at run time may say: it changes what a rule of the script would do, not what that says. */
const LIVE_KEYS = ["contains", "matches", "delay_ms", "fault", "times", "probability"];
const FAULT_KEYS = ["kind", "after_tokens", "code", "message", "trailers", "ms", "bytes"];
const FAULT_KINDS =
  "hang, exit, disconnect, reset, goaway, status, stall, freeze, garble, double, oversize, no-complete, transfer-slow, transfer-fail, bad-digest, kv-gap, kv-silent, kv-late, " +
  "kv-reset or kv-out-of-range";
const LATE_MS = 1000;
/** Above the 4 MiB that gRPC clients take unless told otherwise. */
const OVERSIZE_BYTES = 5 << 20;

/**
 * Reads a YAML script: a list of rules, or a mapping with the list under `rules`. Throws ScriptError.
 *
 *     - contains: weather            # or `matches` with a regular expression; neither: every prompt
 *       text: "It rains."            # or `token_ids`; neither: the usual answer
 *       tokens_per_message: [1, 3]   # the last one goes on
 *       finish_reason: stop          # as it is; without it EOS is added
 *       logprobs: [-0.1, -2]
 *       delay_ms: 200                # before the request reaches the engine
 *       ms_per_token: 50
 *       times: 1                     # later prompts go on to the next rule
 *       probability: 0.5             # of each prompt with the pattern
 *       fault: { kind: status, after_tokens: 2, code: UNAVAILABLE, message: "gone" }
 *
 * Faults are those of ScriptFault: a kind, or a mapping with `kind`; codes by number or name.
 */
export function parseScript(yaml: string): ScriptRule[] {
  let document: unknown;
  try {
    document = Bun.YAML.parse(yaml);
  } catch (error) {
    throw new ScriptError(`is not YAML: ${error instanceof Error ? error.message : String(error)}`);
  }
  const list = isRecord(document) ? document["rules"] : document;
  if (!Array.isArray(list)) throw new ScriptError("rules: must be a list");
  return list.map((rule: unknown, index) => parseRule(rule, `rules[${index}]`));
}

/** Reads a fault that is set at run time: a rule without an answer. Throws ScriptError. */
export function parseLiveFault(value: unknown): ScriptRule {
  const rule = parseRule(value, "fault", LIVE_KEYS);
  if (rule.fault === undefined && rule.delayMs === 0) throw new ScriptError("fault: has neither fault nor delay_ms");
  return rule;
}

function parseRule(value: unknown, at: string, keys = RULE_KEYS): ScriptRule {
  if (!isRecord(value)) throw new ScriptError(`${at}: must be a mapping`);
  onlyKeys(value, keys, at);
  if (value["contains"] !== undefined && value["matches"] !== undefined)
    throw new ScriptError(`${at}: has both contains and matches`);
  const text = optional(value, "text", at, isString, "a text");
  const tokenIds = optional(value, "token_ids", at, isIdList, "a list of token ids");
  if (text !== undefined && tokenIds !== undefined) throw new ScriptError(`${at}: has both text and token_ids`);
  return {
    pattern: pattern(value, at),
    text,
    tokenIds,
    chunkSizes: chunkSizes(value["tokens_per_message"], `${at}.tokens_per_message`),
    finishReason: optional(value, "finish_reason", at, isString, "a text"),
    logprobs: optional(value, "logprobs", at, isNumberList, "a list of numbers"),
    delayMs: optional(value, "delay_ms", at, isDuration, "a number of milliseconds") ?? 0,
    tokenIntervalMs: optional(value, "ms_per_token", at, isDuration, "a number of milliseconds") ?? 0,
    fault: value["fault"] === undefined ? undefined : fault(value["fault"], `${at}.fault`),
    times: optional(value, "times", at, isCount, "a whole number above 0") ?? Number.POSITIVE_INFINITY,
    probability: optional(value, "probability", at, isShare, "a number from 0 to 1") ?? 1,
  };
}

function pattern(rule: Record<string, unknown>, at: string): RegExp | string | undefined {
  const contains = optional(rule, "contains", at, isString, "a text");
  const source = optional(rule, "matches", at, isString, "a regular expression");
  if (source === undefined) return contains;
  try {
    return new RegExp(source, "su");
  } catch (error) {
    throw new ScriptError(`${at}.matches: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function chunkSizes(value: unknown, at: string): readonly number[] {
  if (value === undefined) return [];
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length === 0 || !list.every(isCount))
    throw new ScriptError(`${at}: must be a whole number above 0, or a list of them`);
  return list as number[];
}

function fault(value: unknown, at: string): ScriptFault {
  if (typeof value === "string") return fault({ kind: value }, at);
  if (!isRecord(value)) throw new ScriptError(`${at}: must be a name or a mapping`);
  onlyKeys(value, FAULT_KEYS, at);
  const { kind } = value;
  const afterTokens = optional(value, "after_tokens", at, isNatural, "a whole number") ?? 0;
  switch (kind) {
    case "hang":
    case "no-complete":
    case "bad-digest":
    case "kv-gap":
    case "kv-silent":
    case "kv-reset":
    case "kv-out-of-range":
      return { kind };
    case "transfer-slow":
      return { kind, ms: optional(value, "ms", at, isDuration, "milliseconds") ?? LATE_MS };
    case "transfer-fail":
      return { kind, message: optional(value, "message", at, isString, "a text") ?? "the transfer broke off" };
    case "kv-late":
      return { kind, ms: optional(value, "ms", at, isDuration, "milliseconds") ?? LATE_MS };
    case "disconnect":
    case "stall":
    case "garble":
      return { kind, afterTokens };
    case "double":
      return { kind, afterTokens: Math.max(1, afterTokens) };
    case "freeze":
      return {
        kind,
        afterTokens,
        ms: optional(value, "ms", at, isDuration, "milliseconds") ?? Number.POSITIVE_INFINITY,
      };
    case "oversize":
      return { kind, afterTokens, bytes: optional(value, "bytes", at, isNatural, "a whole number") ?? OVERSIZE_BYTES };
    case "exit":
      return { kind, afterTokens, code: optional(value, "code", at, isNatural, "an exit code") ?? 1 };
    case "reset":
      return { kind, afterTokens, code: named(value, at, ErrorCode, "INTERNAL_ERROR") };
    case "goaway":
      return { kind, afterTokens, code: named(value, at, ErrorCode, "NO_ERROR") };
    case "status": {
      const code = named(value, at, GrpcStatus, "INTERNAL");
      const message = optional(value, "message", at, isString, "a text") ?? "";
      const trailers = optional(value, "trailers", at, isRecord, "a mapping") ?? {};
      const texts = Object.entries(trailers).map(([name, text]) => [name.toLowerCase(), String(text)]);
      return { kind, afterTokens, code, message, trailers: Object.fromEntries(texts) };
    }
    default:
      throw new ScriptError(`${at}.kind: must be ${FAULT_KINDS}, not ${JSON.stringify(kind)}`);
  }
}

/** `code` as a number or as a name of the table. */
function named(
  value: Record<string, unknown>,
  at: string,
  table: Readonly<Record<string, number>>,
  otherwise: string,
): number {
  const code = value["code"] ?? otherwise;
  if (isNatural(code)) return code;
  const known = typeof code === "string" ? table[code] : undefined;
  if (known === undefined)
    throw new ScriptError(`${at}.code: must be a number or one of ${Object.keys(table).join(", ")}`);
  return known;
}

function optional<T>(
  value: Record<string, unknown>,
  key: string,
  at: string,
  is: (value: unknown) => value is T,
  what: string,
): T | undefined {
  const member = value[key];
  if (member === undefined) return undefined;
  if (!is(member)) throw new ScriptError(`${at}.${key}: must be ${what}`);
  return member;
}

function onlyKeys(value: Record<string, unknown>, known: readonly string[], at: string): void {
  for (const key of Object.keys(value))
    if (!known.includes(key)) throw new ScriptError(`${at}.${key}: is not known; keys are ${known.join(", ")}`);
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isString = (value: unknown): value is string => typeof value === "string";
const isNatural = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0;
const isCount = (value: unknown): value is number => Number.isInteger(value) && (value as number) > 0;
const isDuration = (value: unknown): value is number => typeof value === "number" && value >= 0;
const isShare = (value: unknown): value is number => typeof value === "number" && value >= 0 && value <= 1;
const isIdList = (value: unknown): value is number[] => Array.isArray(value) && value.every(isNatural);
const isNumberList = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((item) => typeof item === "number");
