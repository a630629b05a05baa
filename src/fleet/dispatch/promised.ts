/** Requests that are answered by one promise: texts to embed, and what is passed on to HTTP workers. */
import { sleep } from "../clock.ts";
import type { Booking } from "../lease.ts";
import { homeOf } from "../snapshot.ts";
import type { FleetView } from "../view.ts";
import { pauseBeforeNext } from "./attempts.ts";
import { outcomeOf } from "./outcome.ts";
import { avoidFailed, awayError, leaseOther, unlessRemoved } from "./retries.ts";

export interface PromisedTries<L extends Booking, T> {
  /** For those who count. */
  readonly endpoint: string;
  /** The model's id. */
  readonly model: string;
  /** A place at a worker that is not among the tried ones. Throws NoWorkersError and the like. */
  lease(tried: ReadonlySet<number>): L;
  /**
   * One try, the `attempt`th. What it resolves to is the answer, or the beginning of one, and then the place is its own; when it rejects,
   * nothing has come, and the place is given back. `signal` fires, too, when the worker is found not to move, or takes too long, also later:
   * its reason is an EngineError then.
   */
  work(lease: L, attempt: number, signal: AbortSignal): Promise<T>;
  /** Nobody can tell whether that is the fault of the place's worker: `lease` has to see to it that others are asked. */
  isInDoubt?(lease: L, error: unknown): boolean;
}

/**
 * Tries one worker after the other as long as they fail before anything has come. Rejects with the last failure, and as `work` does when
 * `signal` fires.
 */
export async function firstAnswer<L extends Booking, T>(
  { endpoint, model, lease: leaseOf, work, isInDoubt }: PromisedTries<L, T>,
  fleet: FleetView,
  signal: AbortSignal,
): Promise<T> {
  const tried = new Set<number>();
  let made = 0;
  const { policy, observer } = fleet;
  const limits = policy.limitsOf(model);
  fleet.retryBudget.deposit();
  let lease = leaseOf(tried);
  for (;;) {
    made++;
    try {
      return await tryOnce(lease, limits);
    } catch (thrown) {
      if (isInDoubt?.(lease, thrown) !== true) tried.add(homeOf(lease.worker)); // of a pair the one that has failed
      const error = unlessRemoved(fleet, lease, thrown);
      lease.done(outcomeOf(error));
      observer.tried(lease.worker, error);
      avoidFailed(fleet, lease, error);
      const pauseMs = signal.aborted ? undefined : pauseBeforeNext(error, made, policy.rules, Math.random());
      if (pauseMs !== undefined && pauseMs > 0) {
        observer.paused(made, pauseMs);
        await sleep(fleet.clock, pauseMs, signal);
      }
      const next = pauseMs === undefined || signal.aborted ? undefined : leaseOther(fleet, () => leaseOf(tried));
      if (next === undefined) {
        if (made > 1) observer.exhausted(endpoint);
        throw error;
      }
      observer.retried(endpoint);
      lease = next;
    }
  }

  async function tryOnce(place: L, limited: typeof limits): Promise<T> {
    const given = new AbortController();
    const forget = fleet.lost.watch(place.worker.slot, () => given.abort(awayError()));
    place.limit(limited, (error) => given.abort(error));
    try {
      return await work(place, made, AbortSignal.any([signal, given.signal]));
    } catch (error) {
      throw given.signal.aborted && !signal.aborted ? given.signal.reason : error;
    } finally {
      forget();
    }
  }
}
