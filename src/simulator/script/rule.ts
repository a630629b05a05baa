/** What goes wrong with a scripted answer. `afterTokens` counts tokens sent over all choices. */
export type ScriptFault =
  /** Never answers; the request stays open until the client gives up. */
  | { readonly kind: "hang" }
  /** The process exits (or the function given instead is called). */
  | { readonly kind: "exit"; readonly afterTokens: number; readonly code: number }
  /** The connection is cut, with all its calls. */
  | { readonly kind: "disconnect"; readonly afterTokens: number }
  /** RST_STREAM with an HTTP/2 error code. */
  | { readonly kind: "reset"; readonly afterTokens: number; readonly code: number }
  /** GOAWAY on the connection; the answer itself goes on unless the code is not 0. */
  | { readonly kind: "goaway"; readonly afterTokens: number; readonly code: number }
  /** Ends with a gRPC status; after 0 tokens it comes before the first message. */
  | {
      readonly kind: "status";
      readonly afterTokens: number;
      readonly code: number;
      readonly message: string;
      readonly trailers: Readonly<Record<string, string>>;
    }
  /** Sends nothing more, while the request keeps its place in the engine and its stream open. */
  | { readonly kind: "stall"; readonly afterTokens: number }
  /** The whole process stands still for `ms` (Infinity: until it is thawed): nothing is read, answered or sent, pings included. */
  | { readonly kind: "freeze"; readonly afterTokens: number; readonly ms: number }
  /** A message that can't be decoded comes in between. */
  | { readonly kind: "garble"; readonly afterTokens: number }
  /** The message with the last of those tokens comes twice. */
  | { readonly kind: "double"; readonly afterTokens: number }
  /** A message of that many bytes comes in between. */
  | { readonly kind: "oversize"; readonly afterTokens: number; readonly bytes: number }
  /** All tokens, then OK without the final message. */
  | { readonly kind: "no-complete" }
  /** The tokenizer bundle comes with a digest that is not its own. */
  | { readonly kind: "bad-digest" }
  /** In a pair: the prompt's KV takes that many milliseconds longer to go over. */
  | { readonly kind: "transfer-slow"; readonly ms: number }
  /** In a pair: the prompt's KV does not get over. */
  | { readonly kind: "transfer-fail"; readonly message: string }
  /** A batch of KV events is lost on its way. */
  | { readonly kind: "kv-gap" }
  /** KV events are published to nobody. */
  | { readonly kind: "kv-silent" }
  /** KV events come that many milliseconds late. */
  | { readonly kind: "kv-late"; readonly ms: number }
  /** Subscriptions to KV events are broken off. */
  | { readonly kind: "kv-reset" }
  /** A subscription to KV events is refused with OUT_OF_RANGE. */
  | { readonly kind: "kv-out-of-range" };

/** Faults of the engine that no prompt has to do with. A rule's `times` and `probability` count their own occasions. */
export const ENGINE_FAULTS = [
  "bad-digest",
  "kv-gap",
  "kv-silent",
  "kv-late",
  "kv-reset",
  "kv-out-of-range",
] as const satisfies readonly ScriptFault["kind"][];
export type EngineFaultKind = (typeof ENGINE_FAULTS)[number];

export function isEngineFault(kind: ScriptFault["kind"]): kind is EngineFaultKind {
  return ENGINE_FAULTS.some((known) => known === kind);
}

/** One rule of a script: the first whose pattern is found in the decoded prompt applies. */
export interface ScriptRule {
  /** Absent: any prompt. */
  readonly pattern: RegExp | string | undefined;
  readonly text: string | undefined;
  readonly tokenIds: readonly number[] | undefined;
  /** Tokens per message, in order; the last one goes on. */
  readonly chunkSizes: readonly number[];
  /** Finish reason on the wire instead of the one that follows; then no EOS is added. */
  readonly finishReason: string | undefined;
  /** Logprobs of the tokens, in order; those beyond are made up. */
  readonly logprobs: readonly number[] | undefined;
  /** Wait before the request reaches the engine, in real milliseconds. */
  readonly delayMs: number;
  /** Least time between two tokens, in milliseconds; 0 = the engine's own pace. */
  readonly tokenIntervalMs: number;
  readonly fault: ScriptFault | undefined;
  /** Applies that many times, then is passed over. */
  readonly times: number;
  /** Share of the prompts with its pattern to which it applies, 0 to 1. */
  readonly probability: number;
}

/** Whether a rule's pattern is found in the prompt's text. */
export function matches(rule: ScriptRule, promptText: string): boolean {
  if (rule.pattern === undefined) return true;
  return typeof rule.pattern === "string" ? promptText.includes(rule.pattern) : rule.pattern.test(promptText);
}
