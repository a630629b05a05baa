/** What the end of a try says. */
import { EngineError, type EngineErrorKind } from "../../engines/engine.ts";
import type { Outcome } from "../lease.ts";

/** Failures of the worker itself. The others are the request's fault or the client's, or tell of a worker that is well but full. */
const OF_WORKER: ReadonlySet<EngineErrorKind> = new Set(["unavailable", "timeout", "failed"]);

/** For the circuit breaker: a request that is wrong, refused for want of room, or given up, says nothing of the worker. */
export function outcomeOf(error: unknown): Outcome {
  if (error === undefined) return "ok";
  return !(error instanceof EngineError) || OF_WORKER.has(error.kind) ? "failure" : "neutral";
}
