/** Which worker gets a request. */
import { fieldsOf } from "../engines/features.ts";
import { NoWorkersError, UnsupportedError } from "../errors.ts";
import { type LoadOf, leastLoad } from "../routing/least-load.ts";
import { WorkerState } from "../threads/fleet-board.ts";
import type { EnginePool } from "./engine-pool.ts";
import type { LeaseAsk } from "./lease.ts";
import { Place, type Surroundings } from "./place.ts";
import type { WorkerEntry } from "./snapshot.ts";

/** Workers that may get a request. */
interface Candidates {
  /** Some worker can do what is asked, if not now. */
  isAble: boolean;
  readonly reachable: WorkerEntry[];
  /** They could not be reached a moment ago. */
  readonly avoided: WorkerEntry[];
  /** Their circuit breakers are not closed. */
  readonly broken: WorkerEntry[];
}

/** Chooses by the board for one thread. */
export class WorkerChoice {
  private readonly load: LoadOf<WorkerEntry>;
  private turn = 0;

  constructor(private readonly around: Surroundings) {
    const { board } = around;
    this.load = {
      running: ({ slot }) => board.running(slot),
      queuedTokens: ({ slot }) => board.queuedTokens(slot),
      kvTenths: ({ slot }) => board.kvTenths(slot),
    };
  }

  /** Books a place there. Throws UnsupportedError where no worker ever can do what is asked, NoWorkersError where none can now. */
  book<E extends { close(): void }>(
    model: string,
    workers: readonly WorkerEntry[],
    { needs = 0, tokens = 0, tried }: LeaseAsk,
    engines: EnginePool<E>,
  ): Place<E> {
    const { board, thread } = this.around;
    for (;;) {
      const now = this.around.clock.now();
      const candidates = this.candidates(workers, needs, tried, now);
      if (!candidates.isAble && workers.length > 0) throw unsupported(model, workers, needs);
      const [worker, isProbe] = this.choose(model, candidates, tried !== undefined && tried.size > 0, now);
      let engine: E;
      try {
        engine = engines.get(worker);
      } catch (error) {
        if (isProbe) board.breaker.probed(worker.slot, thread, "neutral", now);
        throw error;
      }
      if (board.book(worker.slot, thread, tokens, now)) return new Place(this.around, worker, engine, tokens, isProbe);
    }
  }

  /** The one that would get a request now; nothing is booked. Undefined: none can take one. */
  best(workers: readonly WorkerEntry[]): WorkerEntry | undefined {
    const { reachable, avoided, broken } = this.candidates(workers, 0, undefined, this.around.clock.now());
    const closed = reachable.length > 0 ? reachable : avoided;
    return leastLoad(closed, this.load, this.turn) ?? broken[0];
  }

  private candidates(
    workers: readonly WorkerEntry[],
    needs: number,
    tried: ReadonlySet<number> | undefined,
    now: number,
  ): Candidates {
    const { board } = this.around;
    const found: Candidates = { isAble: false, reachable: [], avoided: [], broken: [] };
    for (const worker of workers) {
      if (missing(worker, needs) !== 0) continue;
      found.isAble = true;
      const { slot } = worker;
      if (board.state(slot) !== WorkerState.ready || tried?.has(slot) === true) continue;
      if (!board.breaker.isClosed(slot)) found.broken.push(worker);
      else (board.isAvoided(slot, now) ? found.avoided : found.reachable).push(worker);
    }
    return found;
  }

  /**
   * A worker, and whether it is tried after its circuit breaker was open. Such a try comes first, as there is one at a time, but is not
   * made with a request that has failed elsewhere.
   */
  private choose(
    model: string,
    { reachable, avoided, broken }: Candidates,
    hasFailed: boolean,
    now: number,
  ): readonly [WorkerEntry, boolean] {
    const { board, thread } = this.around;
    const closed = reachable.length > 0 ? reachable : avoided;
    if (broken.length > 0 && (closed.length === 0 || !hasFailed)) {
      const probe = broken.find(({ slot }) => board.breaker.tryProbe(slot, thread, now));
      if (probe !== undefined) return [probe, true];
    }
    const worker = leastLoad(closed, this.load, this.turn++);
    if (worker !== undefined) return [worker, false];
    const waits = broken.map(({ slot }) => board.breaker.waitMs(slot, now)).filter(Number.isFinite);
    throw new NoWorkersError(model, waits.length === 0 ? 1 : Math.max(1, Math.ceil(Math.min(...waits) / 1000)));
  }
}

/** Bits of `needs` that a worker lacks. One that told nothing of itself is taken at its best. */
const missing = ({ facts }: WorkerEntry, needs: number): number => (facts === undefined ? 0 : needs & ~facts.features);

/** What is told where every worker lacks something: what the one lacks that lacks least. */
function unsupported(model: string, workers: readonly WorkerEntry[], needs: number): UnsupportedError {
  const lacks = workers.map((worker) => fieldsOf(missing(worker, needs)));
  const fields = lacks.reduce((least, one) => (one.length < least.length ? one : least));
  const param = fields.find((field) => !field.includes(" "));
  return new UnsupportedError(`The engines of the model '${model}' do not offer ${fields.join(", ")}`, {
    ...(param !== undefined && { param }),
  });
}
