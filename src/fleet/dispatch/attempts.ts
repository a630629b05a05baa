/** Whether a request that has failed is sent to another worker, and when. */
import { EngineError, type EngineErrorKind } from "../../engines/engine.ts";

export interface AttemptRules {
  /** Workers that one request is sent to at most, the first included. */
  readonly attempts: number;
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
  readonly multiplier: number;
  /** Share of a pause that is left to chance, 0 to 1. */
  readonly jitter: number;
}

/** Failures that another worker may not have; the rest are the request's own. */
const RETRYABLE: ReadonlySet<EngineErrorKind> = new Set(["unavailable", "overloaded", "timeout", "failed"]);

/**
 * The pause before the try that follows `made` tries, of which the last one failed before anything had come; undefined: no other is made. A
 * worker that is away, full or slow is replaced at once, as others need not be; one that failed inside may have met what all would, so
 * there is a pause. `random`: 0 to 1.
 */
export function pauseBeforeNext(error: unknown, made: number, rules: AttemptRules, random: number): number | undefined {
  if (!(error instanceof EngineError) || !RETRYABLE.has(error.kind) || made >= rules.attempts) return undefined;
  return error.kind === "failed" ? backoffMs(made, rules, random) : 0;
}

/** The pause behind so many tries: each longer than the one before, and none the same for all that have failed together. */
export function backoffMs(
  made: number,
  { initialBackoffMs, maxBackoffMs, multiplier, jitter }: AttemptRules,
  random: number,
): number {
  const whole = Math.min(initialBackoffMs * multiplier ** (made - 1), maxBackoffMs);
  return Math.min(whole * (1 + jitter * (2 * random - 1)), maxBackoffMs);
}

/** The id that an engine knows a try by. */
export const idOfTry = (requestId: string, attempt: number): string =>
  attempt === 1 ? requestId : `${requestId}-${attempt}`;
