/** Where in the numbers of a rank's batches one is. */
import type { KvBatch } from "../../engines/kv-events.ts";

/** What a batch means after the ones before it. */
export type KvStep =
  | "next"
  /** Some in between were missed. */
  | "gap"
  /** The engine counts from the start: it is another one, or forgot all. */
  | "restart"
  /** It was there already. */
  | "old";

/** So far back no batch comes that was only late. */
const FAR = 1000;

export class KvCursor {
  private readonly last = new Map<number, number>();

  /** The first of a rank follows anything. */
  step({ sequence, rank, events, snapshot }: KvBatch): KvStep {
    const last = this.last.get(rank);
    if (snapshot?.index === 0) return this.moved(rank, sequence, "restart");
    if (last === undefined || sequence === last + 1) return this.moved(rank, sequence, "next");
    if (sequence > last) return this.moved(rank, sequence, "gap");
    const isNew = (sequence < last && (sequence <= 1 || sequence < last - FAR)) || events[0]?.kind === "cleared";
    return isNew ? this.moved(rank, sequence, "restart") : "old";
  }

  private moved(rank: number, sequence: number, step: KvStep): KvStep {
    this.last.set(rank, sequence);
    return step;
  }
}
