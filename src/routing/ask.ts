/** What is asked of routing: the prompt as token ids, and what its client says of where it should go. */

/** A stretch of media within the ids of a prompt; the words are a hash of what was shown, which placeholders do not tell. */
export interface MediaSpan {
  readonly start: number;
  /** Behind the last id. */
  readonly end: number;
  readonly hi: number;
  readonly lo: number;
}

export interface RouteHints {
  /** `x-smg-routing-key`. */
  readonly routingKey?: string | undefined;
  /** What clients say that belongs together: `prompt_cache_key`, or the id of an agent's session. */
  readonly sessionKey?: string | undefined;
  /** `x-smg-target-worker`: a worker's id or URL, or its number among those that can be chosen. */
  readonly target?: string | undefined;
}

export interface RouteAsk extends RouteHints {
  /** Absent where the prompt was not made into tokens here. */
  readonly tokenIds?: Uint32Array | undefined;
  readonly lora?: string | undefined;
  readonly cacheSalt?: string | undefined;
  readonly media?: readonly MediaSpan[] | undefined;
  /** Length of the prompt in tokens, or an estimate. */
  readonly tokens: number;
}
