/** Which workers can take a request now, and why the others cannot. */
import { fieldsOf } from "../engines/features.ts";
import { UnsupportedError } from "../errors.ts";
import { namedIn } from "../routing/policies/target.ts";
import type { Leg } from "../routing/policy.ts";
import { type FleetBoard, WorkerState, type WorkerStateCode } from "../threads/fleet-board.ts";
import type { Seat } from "./crew.ts";
import type { LeaseAsk } from "./lease.ts";
import { engineKind, homeOf } from "./snapshot.ts";

/** Workers that may get a request; the lists are used again by the next `sort`. */
export class Candidates {
  /** Some worker can do what is asked, if not now. */
  isAble = false;
  private readonly reachable: Seat[] = [];
  /** They could not be reached a moment ago. */
  private readonly avoided: Seat[] = [];
  /** Their circuit breakers are not closed. */
  readonly broken: Seat[] = [];
  /** The one that the client names, where it is the only one left. */
  private only: Seat | undefined;

  constructor(private readonly board: FleetBoard) {}

  /** Those among which the choice is made: workers that could not be reached a moment ago come last. */
  get closed(): readonly Seat[] {
    return this.reachable.length > 0 ? this.reachable : this.avoided;
  }

  sort(seats: readonly Seat[], { needs = 0, tried, rank, kind, isIdle = false }: LeaseAsk, now: number): void {
    const { board, reachable, avoided, broken } = this;
    this.isAble = false;
    this.only = undefined;
    reachable.length = avoided.length = broken.length = 0;
    for (const seat of seats) {
      const { slot, worker } = seat;
      if (missing(seat, needs) !== 0) continue;
      this.isAble = true;
      if (rank !== undefined && worker.rank !== undefined && worker.rank !== rank) continue;
      if (kind !== undefined && engineKind(worker) !== kind) continue;
      if (board.state(slot) !== WorkerState.ready || (tried !== undefined && wasTried(seat, tried))) continue;
      if (isIdle && board.running(slot) > 0) continue;
      if (!board.breaker.isClosed(slot)) {
        if (!isIdle) broken.push(seat);
      } else (board.isAvoided(slot, now) ? avoided : reachable).push(seat);
    }
  }

  /**
   * A client names a worker. That one is asked, also where it could not be reached a moment ago or is to be tried behind its circuit breaker;
   * and no other one is tried instead, unless the name may be that of the other half of a pair and nobody else is left for this one.
   */
  aim(target: string, leg: Leg): void {
    const { reachable, avoided, broken } = this;
    if (namedIn(reachable, target) === undefined) {
      const seat = namedIn(avoided, target);
      if (seat !== undefined) reachable.push(seat);
      else this.only = namedIn(broken, target);
    }
    if (this.only !== undefined) {
      reachable.length = avoided.length = 0;
      broken[0] = this.only;
      broken.length = 1;
    } else if (leg === "regular" || this.closed.length > 0) broken.length = 0;
  }

  /** Of a worker, for people to read. */
  stateOf(slot: number): string {
    return STATES[this.board.state(slot)];
  }

  /** Why a worker is not among those to choose from; undefined where it is. */
  excluded(seat: Seat, { needs = 0, tried, rank, kind }: LeaseAsk): string | undefined {
    const { board } = this;
    const { slot, worker } = seat;
    const lacks = missing(seat, needs);
    if (lacks !== 0) return `lacks ${fieldsOf(lacks).join(", ")}`;
    if (rank !== undefined && worker.rank !== undefined && worker.rank !== rank) return "another rank is asked for";
    if (kind !== undefined && engineKind(worker) !== kind) return "another engine than the one that prefills";
    if (board.state(slot) !== WorkerState.ready) return this.stateOf(slot);
    if (tried !== undefined && wasTried(seat, tried)) return "tried";
    if (!board.breaker.isClosed(slot)) return `breaker ${board.breaker.state(slot)}`;
    if (this.closed.includes(seat)) return undefined;
    return this.only === undefined ? "could not be reached a moment ago" : "another worker is named";
  }
}

const STATES: Readonly<Record<WorkerStateCode, string>> = {
  [WorkerState.absent]: "gone",
  [WorkerState.ready]: "ready",
  [WorkerState.starting]: "starting",
  [WorkerState.unhealthy]: "unhealthy",
  [WorkerState.draining]: "draining",
  [WorkerState.failed]: "failed",
};

/** A rank shares its process and its connection with the others of its worker: one that was tried stands for all. */
const wasTried = ({ slot, worker }: Seat, tried: ReadonlySet<number>): boolean =>
  tried.has(slot) || (worker.home !== undefined && tried.has(homeOf(worker)));

/** Bits of `needs` that a worker lacks. One that told nothing of itself is taken at its best. */
const missing = ({ worker: { facts } }: Seat, needs: number): number =>
  facts === undefined ? 0 : needs & ~facts.features;

/** What is told where every worker lacks something: what the one lacks that lacks least. */
export function unsupported(model: string, seats: readonly Seat[], needs: number): UnsupportedError {
  const lacks = seats.map((seat) => fieldsOf(missing(seat, needs)));
  const fields = lacks.reduce((least, one) => (one.length < least.length ? one : least));
  const param = fields.find((field) => !field.includes(" "));
  return new UnsupportedError(`The engines of the model '${model}' do not offer ${fields.join(", ")}`, {
    ...(param !== undefined && { param }),
  });
}
