/** A booked place at a worker. */
import type { Engine, EngineError } from "../engines/engine.ts";
import type { HttpEngine } from "../engines/http/engine.ts";
import type { RouteAsk } from "../routing/ask.ts";
import type { TimeLimits } from "./dispatch/policy.ts";
import type { WorkerEntry } from "./snapshot.ts";

/** How a try at a worker ended, for its circuit breaker: what the client or its request did wrong is neutral. */
export type Outcome = "ok" | "failure" | "neutral";

export interface LeaseAsk {
  /** Bits of `Feature` that the worker must have. */
  readonly needs?: number;
  /** Tokens of the prompt (of HTTP workers an estimate): they count as queued until the first token comes. */
  readonly tokens?: number;
  /** Slots of workers that were tried already. */
  readonly tried?: ReadonlySet<number>;
  /** By what the worker is chosen. */
  readonly route?: RouteAsk;
}

/** A place counts in the worker's load until `done`. */
export interface Booking {
  readonly worker: WorkerEntry;
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
