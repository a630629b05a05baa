/** Requests of this thread that can still go elsewhere when their worker is lost. */
export class LostWorkers {
  private readonly bySlot = new Map<number, Set<() => void>>();

  /** Calls `lost` when the worker of a slot is found not to move, unless that was called off before. */
  watch(slot: number, lost: () => void): () => void {
    let waiting = this.bySlot.get(slot);
    if (waiting === undefined) {
      waiting = new Set();
      this.bySlot.set(slot, waiting);
    }
    const its = waiting.add(lost);
    return () => {
      if (its.delete(lost) && its.size === 0 && this.bySlot.get(slot) === its) this.bySlot.delete(slot);
    };
  }

  /** Control has taken the worker out. */
  lost(slot: number): void {
    const waiting = this.bySlot.get(slot);
    this.bySlot.delete(slot);
    for (const lost of waiting ?? []) lost();
  }

  /** Workers with requests that have not begun. */
  get size(): number {
    return this.bySlot.size;
  }
}
