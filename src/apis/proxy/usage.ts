/** What an answer that is passed on tells of its tokens, without reading all of it. */

export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Of those of the prompt; undefined where it is not told. */
  readonly cachedTokens: number | undefined;
}

const KEY = '"usage"';
/** Characters that the object of a usage may have. */
const LONGEST = 4096;
/** The object, with objects in it of details. */
const OBJECT = /^"usage"\s*:\s*(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})/;
/** What a member may look like that has none: most engines write a null into every event but the last. */
const NULL = /^"usage"\s*:\s*n/;

/** The usage that is told last; undefined where none is. Inside of JSON's strings there are no quotes without a backslash. */
export function usageOf(answer: Buffer): Usage | undefined {
  const at = answer.lastIndexOf(KEY);
  return at < 0 ? undefined : usageAt(answer.toString("latin1", at, at + LONGEST));
}

/** Looks at the events of a stream: the last one that tells a usage counts. */
export class UsageScanner {
  private last: string | undefined;

  see(events: Buffer): void {
    const at = events.lastIndexOf(KEY);
    if (at >= 0 && !NULL.test(events.toString("latin1", at, at + 16)))
      this.last = events.toString("latin1", at, at + LONGEST);
  }

  get usage(): Usage | undefined {
    return this.last === undefined ? undefined : usageAt(this.last);
  }
}

function usageAt(text: string): Usage | undefined {
  const object = OBJECT.exec(text)?.[1];
  if (object === undefined) return undefined;
  let usage: Readonly<Record<string, unknown>>;
  try {
    usage = JSON.parse(object) as typeof usage;
  } catch {
    return undefined;
  }
  const { prompt_tokens: prompt, total_tokens: total, completion_tokens: completion } = usage;
  const { cached_tokens: cached } = (usage["prompt_tokens_details"] ?? {}) as { readonly cached_tokens?: unknown };
  const promptTokens = typeof prompt === "number" ? prompt : total; // Jina's rerank tells a total only
  if (typeof promptTokens !== "number") return undefined;
  return {
    promptTokens,
    completionTokens: typeof completion === "number" ? completion : 0,
    cachedTokens: typeof cached === "number" ? cached : undefined,
  };
}
