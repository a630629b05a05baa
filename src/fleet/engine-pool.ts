import type { WorkerEntry } from "./snapshot.ts";

/** One thread's connections of one kind: made when they are first needed, and anew for a worker that registers anew. */
export class EnginePool<E extends { close(): void }> {
  private readonly open = new Map<number, E>();

  constructor(private readonly create: (worker: WorkerEntry) => E) {}

  get(worker: WorkerEntry): E {
    let engine = this.open.get(worker.slot);
    if (engine === undefined) {
      engine = this.create(worker);
      this.open.set(worker.slot, engine);
    }
    return engine;
  }

  /** Closes what belongs to none of the workers. */
  keep(workers: readonly WorkerEntry[]): void {
    const slots = new Set(workers.map(({ slot }) => slot));
    for (const [slot, engine] of this.open) {
      if (slots.has(slot)) continue;
      this.open.delete(slot);
      engine.close();
    }
  }
}
