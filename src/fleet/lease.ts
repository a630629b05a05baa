/** A booked place at a worker. */
import type { Engine, EngineError } from "../engines/engine.ts";
import type { HttpEngine } from "../engines/http/engine.ts";
import type { RouteAsk, RouteHints } from "../routing/ask.ts";
import type { Branch, PolicyName } from "../routing/policy.ts";
import type { TimeLimits } from "./dispatch/policy.ts";
import type { WorkerEntry } from "./snapshot.ts";

/** How a try at a worker ended, for its circuit breaker: what the client or its request did wrong is neutral. */
export type Outcome = "ok" | "failure" | "neutral";

/** What became of a request, for its client to read. */
export interface RouteTrace {
  /** Id of the worker that it was given to last. */
  worker?: string;
  /** Tokens of the prompt that the worker's cache was taken to hold. */
  predictedTokens?: number;
  /** Those that it held, as the engine said; absent until it is known. */
  cachedTokens?: number;
}

/** What a request brings along for those who choose its worker. */
export interface RouteOfRequest {
  readonly hints?: RouteHints | undefined;
  /** Written where somebody wants to read it. */
  readonly trace?: RouteTrace | undefined;
}

/** Why a place is where it is. */
export interface ChoiceNote {
  readonly policy: PolicyName;
  /** `probe`: the policy was not asked, as a worker is tried whose circuit breaker was open. */
  readonly branch: Branch | "probe";
  /** Tokens of the prompt that the worker's cache is taken to hold. */
  readonly predictedTokens: number;
  /** The worker has told so itself. */
  readonly isExact: boolean;
  /** Tokens of the prompt, or an estimate. */
  readonly promptTokens: number;
}

export interface LeaseAsk {
  /** Bits of `Feature` that the worker must have. */
  readonly needs?: number;
  /**
   * Tokens of the prompt (of HTTP workers an estimate), unless `route` tells them: those that the worker's cache does not hold count as
   * queued until the first token comes.
   */
  readonly tokens?: number;
  /** Slots of workers that were tried already; that of the worker itself stands for all of its ranks. */
  readonly tried?: ReadonlySet<number>;
  /** By what the worker is chosen. */
  readonly route?: RouteAsk;
  /** The data-parallel rank that the client wants, where ranks are chosen by themselves. */
  readonly rank?: number | undefined;
  /** Only a worker of this kind (`engineKind`) will do. */
  readonly kind?: string | undefined;
  /** Only a worker that runs nothing will do. */
  readonly isIdle?: boolean;
  readonly trace?: RouteTrace | undefined;
}

/** A place counts in the worker's load until `done`. */
export interface Booking {
  readonly worker: WorkerEntry;
  readonly choice: ChoiceNote;
  /** It is the one request by which a half-open circuit breaker tries the worker. */
  readonly isProbe: boolean;
  /** The first token came: the prompt is no longer queued. */
  begun(): void;
  /** Something came: the worker moves. It sets a mark and nothing else; call it as often as something comes. */
  progress(): void;
  /** Nothing can come while the client does not read: the worker is not held to anything then. */
  hold(isHeld: boolean): void;
  /** Calls `onElapsed` once, with the failure "timeout", when the worker takes longer, to within a quarter of a second. */
  limit(limits: TimeLimits, onElapsed: (error: EngineError) => void): void;
  /** The engine told how many tokens of the prompt its cache held, and how many there are where it counted them; the first call counts. */
  cached(tokens: number, promptTokens?: number): void;
  /** Gives the place back; exactly one call counts. */
  done(outcome: Outcome): void;
}

export interface Lease extends Booking {
  readonly engine: Engine;
}

/** Places of a request whose prompt one worker prefills and whose answer another decodes. */
export interface LeasePair {
  readonly prefill: Lease;
  readonly decode: Lease;
}

export interface HttpLease extends Booking {
  readonly engine: HttpEngine;
}

export interface HttpLeasePair {
  readonly prefill: HttpLease;
  readonly decode: HttpLease;
}
