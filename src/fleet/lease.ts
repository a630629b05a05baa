/** A booked place at a worker. */
import type { Engine } from "../engines/engine.ts";
import type { HttpEngine } from "../engines/http/engine.ts";
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
}

/** A place counts in the worker's load until `done`. */
export interface Booking {
  readonly worker: WorkerEntry;
  /** It is the one request by which a half-open circuit breaker tries the worker. */
  readonly isProbe: boolean;
  /** The first token came: the prompt is no longer queued. */
  begun(): void;
  /** Something came: the worker moves. Cheap; call it as often as something comes. */
  progress(): void;
  /** Gives the place back; exactly one call counts. */
  done(outcome: Outcome): void;
}

export interface Lease extends Booking {
  readonly engine: Engine;
}

export interface HttpLease extends Booking {
  readonly engine: HttpEngine;
}
