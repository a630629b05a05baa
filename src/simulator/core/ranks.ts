import type { EngineDriver } from "./driver.ts";
import type { CoreOptions } from "./options.ts";
import type { CoreLoad } from "./step.ts";

/** The data-parallel ranks of an engine: each with a scheduler, a clock and a cache of its own. */
export class Ranks {
  private turn = 0;

  /** One driver at least; all have the same settings. */
  constructor(readonly drivers: readonly EngineDriver[]) {}

  get size(): number {
    return this.drivers.length;
  }

  get options(): CoreOptions {
    return this.drivers[0]!.core.options;
  }

  at(rank: number): EngineDriver {
    return this.drivers[rank]!;
  }

  /** The rank for a request that names none: the one with the fewest requests, in turn among equals. */
  next(): number {
    const { drivers } = this;
    let best = 0;
    let fewest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < drivers.length; i++) {
      const rank = (this.turn + i) % drivers.length;
      const { core } = drivers[rank]!;
      const requests = core.running.length + core.waiting.length;
      if (requests >= fewest) continue;
      fewest = requests;
      best = rank;
    }
    this.turn = (best + 1) % drivers.length;
    return best;
  }

  loads(): CoreLoad[] {
    return this.drivers.map(({ core }) => core.load());
  }

  /** The figures of all ranks together. */
  load(): CoreLoad {
    const loads = this.loads();
    if (loads.length === 1) return loads[0]!;
    const sum = (name: keyof CoreLoad) => loads.reduce((total, load) => total + load[name], 0);
    return {
      running: sum("running"),
      waiting: sum("waiting"),
      waitingUncachedTokens: sum("waitingUncachedTokens"),
      blocksInUse: sum("blocksInUse"),
      blocksPinned: sum("blocksPinned"),
      blocksCached: sum("blocksCached"),
      blocksTotal: sum("blocksTotal"),
      throughput: sum("throughput"),
      hitRate: sum("hitRate") / loads.length,
      preemptions: sum("preemptions"),
      evictedBlocks: sum("evictedBlocks"),
    };
  }

  get busy(): boolean {
    return this.drivers.some(({ core }) => core.busy);
  }

  /** Forgets all prefix caches. False, with nothing done, while sequences run. */
  flush(): boolean {
    if (this.drivers.some(({ core }) => core.running.length > 0)) return false;
    for (const { core } of this.drivers) core.flush();
    return true;
  }

  pause(): void {
    for (const driver of this.drivers) driver.pause();
  }

  resume(): void {
    for (const driver of this.drivers) driver.resume();
  }

  stop(): void {
    for (const driver of this.drivers) driver.stop();
  }
}
