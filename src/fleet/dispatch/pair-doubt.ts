/** Pairs that have failed where nobody can tell which half did it. */
import type { EngineError, EngineErrorKind } from "../../engines/engine.ts";
import { NoWorkersError } from "../../errors.ts";
import { homeOf, type WorkerEntry } from "../snapshot.ts";

/** The workers of a pair. */
export interface PairWorkers {
  readonly prefill: WorkerEntry;
  readonly decode: WorkerEntry;
}

/** Workers, either of which may have been the one. */
export interface Doubted extends PairWorkers {
  /** The one of them that it was charged to. */
  readonly charged: WorkerEntry | undefined;
}

/** Failures that a half may have by what the other does: the cache that did not get over. The rest a worker has by itself. */
const SHARED: ReadonlySet<EngineErrorKind> = new Set(["failed", "timeout"]);

/** The half that tells of it may have it from the other, where they have to do with each other then. */
export const mayBeShared = ({ kind }: EngineError): boolean => SHARED.has(kind);

/** Pairs of one request that are in doubt. */
export class Doubts {
  private readonly pairs: Doubted[] = [];

  add(pair: Doubted): void {
    this.pairs.push(pair);
  }

  /**
   * Books another pair by `book`, which is told who is left out; `tried`: slots of those that are left out anyway. First the half that
   * decodes is replaced: what was prefilled may still be there, and who of the two it was is known when that goes well. Then it is others
   * altogether, or where there are none, another of one half. Throws as `book`.
   */
  book<T>(tried: ReadonlySet<number>, book: (tried: ReadonlySet<number>) => T): T {
    const { pairs } = this;
    if (pairs.length === 0) return book(tried);
    const prefill = pairs.map((pair) => homeOf(pair.prefill));
    const decode = pairs.map((pair) => homeOf(pair.decode));
    if (pairs.length > 1) {
      try {
        return book(new Set([...tried, ...prefill, ...decode]));
      } catch (error) {
        if (!(error instanceof NoWorkersError)) throw error;
      }
    }
    try {
      return book(new Set([...tried, ...decode]));
    } catch (error) {
      if (!(error instanceof NoWorkersError)) throw error;
      return book(new Set([...tried, ...prefill]));
    }
  }

  /** Another pair does it: those that it does without, and that nothing was charged to, are handed to `charge`. */
  settle(better: PairWorkers, charge: (worker: WorkerEntry) => void): void {
    const well = [better.prefill, better.decode].map(homeOf);
    for (const { prefill, decode, charged } of this.pairs)
      for (const worker of [prefill, decode]) if (worker !== charged && !well.includes(homeOf(worker))) charge(worker);
    this.pairs.length = 0;
  }
}
