/** What all requests that go to workers have in common, whatever they ask for. */
import { EngineError, WorkerRemovedError } from "../../engines/engine.ts";
import type { Booking, Outcome } from "../lease.ts";
import type { FleetView } from "../view.ts";

/** A worker was lost before it began. */
export const awayError = () => new EngineError("unavailable", "the engine does not answer any more");

/** Connections to a worker that was removed are cut when its time is over: that is said of what fails by it. */
export function unlessRemoved<E>(fleet: FleetView, { worker }: Booking, error: E): E | WorkerRemovedError {
  const isCut = error instanceof EngineError && error.kind === "unavailable" && !fleet.has(worker);
  return isCut ? new WorkerRemovedError(error) : error;
}

/** A place at another worker, or two, if there is one, and the budget of retries has room. */
export function leaseOther<L extends { done(outcome: Outcome): void }>(
  fleet: FleetView,
  lease: () => L,
): L | undefined {
  let found: L;
  try {
    found = lease();
  } catch {
    return undefined; // the failure that led here is the one to tell
  }
  if (fleet.retryBudget.retryToken()) return found;
  found.done("neutral");
  fleet.observer.budgetDenied();
  return undefined;
}

/** After a failure others are preferred: for a moment where it cannot be reached, for as long as it asks for, there and where it is full. */
export function avoidFailed(fleet: FleetView, { worker }: Booking, error: unknown): void {
  if (!(error instanceof EngineError)) return;
  const { kind, retryAfterMs } = error;
  if (retryAfterMs !== undefined && (kind === "overloaded" || kind === "unavailable"))
    fleet.avoid(worker, Math.min(retryAfterMs, fleet.policy.rules.maxBackoffMs));
  else if (kind === "unavailable") fleet.avoid(worker);
}
