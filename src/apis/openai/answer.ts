/** What the answers of Chat Completions and Completions have in common. */
import type { GatewayError } from "../../errors.ts";
import type { FrameWriter } from "../shared/answer.ts";
import { openAiError } from "./errors.ts";

/** What the answers of both are told with. */
export interface StreamedAnswer {
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  /** The name that the client used. */
  readonly model: string;
  /** The last frame of a stream tells the usage. */
  readonly includeUsage: boolean;
  /** Each one tells the usage so far. */
  readonly continuousUsage: boolean;
}

/** What of a frame comes before its choices. `object`: the value of that member. */
export const frameHead = (object: string, { id, created, model }: StreamedAnswer): string =>
  flat(
    `data: {"id":${JSON.stringify(id)},"object":"${object}","created":${created},"model":${JSON.stringify(model)},"choices":[`,
  );

/** Texts up to this length are looked through for what has to be escaped: that is less work than to call `JSON.stringify`. */
const SHORT = 16;

/** A JSON string. */
export function quoted(text: string): string {
  if (text.length > SHORT) return JSON.stringify(text);
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c < 0x20 || c === 0x22 || c === 0x5c || c >= 0xd800) return JSON.stringify(text);
  }
  return `"${text}"`;
}

/**
 * The same text in one piece. JavaScriptCore joins texts when they are first read, and a text that others are made with is not joined by
 * reading these: its pieces would be gathered again for every frame.
 */
export const flat = (text: string): string => (text.charCodeAt(0) >= 0 ? text : "");

/** What of a frame comes behind its choices, where usage is not told with each. */
export const frameTail = ({ includeUsage }: Pick<StreamedAnswer, "includeUsage">): string =>
  includeUsage ? `],"usage":null}\n\n` : "]}\n\n";

/** The same where it is (`continuous_usage_stats`). `tokens`: of the answer so far, choice by choice; a choice may be missing. */
export function usageTail(prompt: number, tokens: readonly (number | undefined)[]): string {
  const completion = tokens.reduce<number>((sum, n) => sum + (n ?? 0), 0);
  return `],"usage":{"prompt_tokens":${prompt},"completion_tokens":${completion},"total_tokens":${prompt + completion}}}\n\n`;
}

/** Ends a stream that has failed: by a frame of its own, and no `[DONE]` behind it; one that has not started is left as it is. */
export function failStream(out: FrameWriter, error: GatewayError, started: boolean): void {
  if (error.status === 499) out.cut();
  else if (started) {
    out.write(`data: ${JSON.stringify(openAiError(error))}\n\n`);
    out.end();
  }
}

/** Where a choice ended by something the request named, engines and gateways show it: vLLM as stop_reason, SGLang and SMG as matched_stop. */
export function stopFields(matched: string | number | undefined): {
  stop_reason?: string | number;
  matched_stop?: string | number;
} {
  return matched === undefined ? {} : { stop_reason: matched, matched_stop: matched };
}
