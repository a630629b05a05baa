/** Where in the numbers of a rank's batches one is. */
import type { KvBatch } from "../../engines/kv-events.ts";

/** What a batch means after the ones before it. */
export type KvStep =
  | "next"
  /** Some in between were missed. */
  | "gap"
  /** The engine counts from the start, or this goes on where nobody has listened: what was told before is void. */
  | "restart"
  /** It was there already. */
  | "old";

/** So far back no batch comes that was only late. */
const FAR = 1000;

export class KvCursor {
  private readonly last = new Map<number, number>();
  /** The same at the end of the subscription before. */
  private readonly before: ReadonlyMap<number, number>;
  /** Ranks of which all was told that they hold. */
  private readonly whole: Set<number>;
  /** How often what `isWhole` and `areWhole` tell may have changed. */
  changes = 0;

  /** `before`: the cursor of a subscription that was lost. Where this one goes on at the next number, nothing was missed. */
  constructor(before?: KvCursor) {
    this.before = new Map(before && [...before.before, ...before.last]);
    this.whole = new Set(before?.whole);
  }

  /** Ranks that were heard of. */
  get ranks(): number {
    return new Set([...this.before.keys(), ...this.last.keys()]).size;
  }

  /** What it has and is used again and again would never be told otherwise. */
  isWhole(rank: number): boolean {
    return this.last.has(rank) && this.whole.has(rank);
  }

  get areWhole(): boolean {
    for (const rank of this.last.keys()) if (!this.whole.has(rank)) return false;
    return this.last.size > 0;
  }

  /** The first of a rank follows anything, but what was told before. */
  step(batch: KvBatch): KvStep {
    const { rank, sequence, snapshot, events } = batch;
    // nearly all of them are just the next one
    if (this.last.get(rank) === sequence - 1 && snapshot === undefined && !hasCleared(events)) {
      this.last.set(rank, sequence);
      return "next";
    }
    const step = this.stepOf(batch);
    if (step === "old") return step;
    const isKnown = this.last.has(rank);
    const isFirst = !isKnown && !this.before.has(rank);
    this.last.set(rank, sequence);
    if (!isKnown) this.changes++;
    const isAnew = step === "restart" || isFirst;
    if (snapshot?.isPartial === true) this.mark(rank, false);
    else if ((isAnew && sequence <= 1) || snapshot?.index === 0 || hasCleared(events)) this.mark(rank, true);
    else if (step !== "next") this.mark(rank, false);
    return step;
  }

  private mark(rank: number, isWhole: boolean): void {
    if (this.whole.has(rank) === isWhole) return;
    if (isWhole) this.whole.add(rank);
    else this.whole.delete(rank);
    this.changes++;
  }

  private stepOf({ sequence, rank, events, snapshot }: KvBatch): KvStep {
    const last = this.last.get(rank);
    if (snapshot?.index === 0) return "restart";
    if (last === undefined) {
      const before = this.before.get(rank);
      return before === undefined || (sequence === before + 1 && sequence > 1) ? "next" : "restart";
    }
    if (sequence === last + 1) return "next";
    if (sequence > last) return "gap";
    const isNew = (sequence < last && (sequence <= 1 || sequence < last - FAR)) || events[0]?.kind === "cleared";
    return isNew ? "restart" : "old";
  }
}

function hasCleared(events: KvBatch["events"]): boolean {
  for (const { kind } of events) if (kind === "cleared") return true;
  return false;
}
