/** What all requests that go to workers have in common, whatever they ask for. */
import { EngineError } from "../../engines/engine.ts";
import type { Booking } from "../lease.ts";
import type { FleetView } from "../view.ts";

/** A worker was lost before it began. */
export const awayError = () => new EngineError("unavailable", "the engine does not answer any more");

/** A place at another worker, if there is one, and the budget of retries has room. */
export function leaseOther<L extends Booking>(fleet: FleetView, lease: () => L): L | undefined {
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

/** After a failure others are preferred: for a moment where it cannot be reached, for as long as it asks for where it is full. */
export function avoidFailed(fleet: FleetView, { worker }: Booking, error: unknown): void {
  if (!(error instanceof EngineError)) return;
  if (error.kind === "unavailable") fleet.avoid(worker);
  else if (error.kind === "overloaded" && error.retryAfterMs !== undefined)
    fleet.avoid(worker, Math.min(error.retryAfterMs, fleet.policy.rules.maxBackoffMs));
}
