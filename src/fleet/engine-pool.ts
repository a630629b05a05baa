import { homeOf, type WorkerEntry } from "./snapshot.ts";

/** One thread's connections of one kind: made when they are first needed, and anew for a worker that registers anew. Ranks share them. */
export class EnginePool<E extends { close(): void }> {
  private readonly open = new Map<number, E>();

  constructor(private readonly create: (worker: WorkerEntry) => E) {}

  get(worker: WorkerEntry): E {
    const home = homeOf(worker);
    let engine = this.open.get(home);
    if (engine === undefined) {
      engine = this.create(worker);
      this.open.set(home, engine);
    }
    return engine;
  }

  /** Closes what belongs to none of the workers. */
  keep(workers: readonly WorkerEntry[]): void {
    const slots = new Set(workers.map(homeOf));
    for (const [slot, engine] of this.open) {
      if (slots.has(slot)) continue;
      this.open.delete(slot);
      engine.close();
    }
  }
}
