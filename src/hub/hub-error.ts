/**
 * What kept a model's files away. `revision`: the repository is there, the revision is not. `denied`: it needs a token, another one, or
 * its terms accepted. `missing`: no such repository or file. `unreachable`: no network, no answer in time, or the hub is down or
 * too busy. `offline`: not in the cache, and the network is switched off. `broken`: an answer that can't be right. `setting`: a
 * variable of the environment is wrong.
 */
export type HubErrorKind = "revision" | "denied" | "missing" | "unreachable" | "offline" | "broken" | "setting";

/** A model's files could not be had from the hub or its cache. The message says what to do; it holds no token. */
export class HubError extends Error {
  override readonly name = "HubError";
  constructor(
    readonly kind: HubErrorKind,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
