import type { KvEvent } from "../core/kv-events.ts";
import type { Ranks } from "../core/ranks.ts";
import type { CoreLoad } from "../core/step.ts";
import type { RuleBook } from "../script/book.ts";

/** What a step changed in the cache of a rank. */
export interface KvBatch {
  readonly rank: number;
  /** Each rank counts its own. */
  readonly sequence: number;
  /** Seconds since the epoch. */
  readonly at: number;
  readonly events: readonly KvEvent[];
  /** The rank's load at that time. */
  readonly load: CoreLoad;
}

export interface KvListener {
  batch(batch: KvBatch): void;
  /** A batch was lost on its way. It has its number, and may still be in the history. */
  lost(batch: KvBatch): void;
  /** A fault breaks the subscription off. */
  cut(): void;
}

export interface KvFeedOptions {
  /** Number of a rank's first batch. */
  readonly first: number;
  /** Batches that a rank keeps for those who come later. */
  readonly history: number;
}

interface Kept {
  last: number;
  batches: KvBatch[];
}

/**
 * The engine's KV event publisher: a batch for each step in which the cache of a rank changed, numbered whether somebody listens
 * or not. Plays the faults `kv-gap`, `kv-silent`, `kv-late` and `kv-reset`.
 */
export class KvFeed {
  private readonly listeners = new Set<KvListener>();
  private readonly kept: readonly Kept[];
  /** Batches that a fault holds up, in order. */
  private readonly late: { readonly due: number; readonly batch: KvBatch }[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly ranks: Ranks,
    private readonly rules: RuleBook,
    private readonly options: KvFeedOptions,
  ) {
    this.kept = ranks.drivers.map(() => ({ last: options.first - 1, batches: [] }));
    for (const [rank, driver] of ranks.drivers.entries()) driver.onStep = () => this.step(rank);
    this.keepWhatIsNeeded();
  }

  /** Hears of all batches from now on; gives what ends that. */
  listen(listener: KvListener): () => void {
    this.listeners.add(listener);
    this.keepWhatIsNeeded();
    return () => {
      this.listeners.delete(listener);
      this.keepWhatIsNeeded();
    };
  }

  /** Number of a rank's latest batch; one below the first before there is one. */
  last(rank: number): number {
    return this.kept[rank]!.last;
  }

  /** Kept batches of a rank from a number on. */
  from(rank: number, sequence: number): readonly KvBatch[] {
    return this.kept[rank]!.batches.filter((batch) => batch.sequence >= sequence);
  }

  /** Whether every batch of a rank from a number on is still kept. */
  has(rank: number, sequence: number): boolean {
    const { last, batches } = this.kept[rank]!;
    return sequence > last ? sequence === last + 1 : (batches[0]?.sequence ?? Number.POSITIVE_INFINITY) <= sequence;
  }

  get first(): number {
    return this.options.first;
  }

  /** A fault may have been set that breaks subscriptions off. */
  faultsChanged(): void {
    if (this.listeners.size > 0 && this.rules.takeOf("kv-reset"))
      for (const listener of [...this.listeners]) listener.cut();
  }

  /** Publishes what a rank's running step has changed so far, for who wants to read the cache as it is. */
  settle(rank: number): void {
    this.step(rank);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.late.length = 0;
    this.listeners.clear();
  }

  private keepWhatIsNeeded(): void {
    const listening = this.listeners.size > 0 || this.options.history > 0;
    for (const { core } of this.ranks.drivers) core.cache.events.listening = listening;
  }

  private step(rank: number): void {
    const { core } = this.ranks.at(rank);
    const events = core.cache.events.take();
    if (!events) return;
    const kept = this.kept[rank]!;
    const batch = { rank, sequence: ++kept.last, at: Date.now() / 1000, events, load: core.load() };
    if (this.options.history > 0 && kept.batches.push(batch) > this.options.history) kept.batches.shift();
    if (this.listeners.size > 0) this.publish(batch);
  }

  private publish(batch: KvBatch): void {
    const { rules, late } = this;
    this.faultsChanged();
    if (rules.takeOf("kv-silent")) return;
    if (rules.takeOf("kv-gap")) {
      for (const listener of [...this.listeners]) listener.lost(batch);
      return;
    }
    const fault = rules.takeOf("kv-late");
    const ms = fault?.kind === "kv-late" ? fault.ms : 0;
    if (ms === 0 && late.length === 0) this.deliver(batch);
    else {
      late.push({ due: Math.max(performance.now() + ms, late.at(-1)?.due ?? 0), batch });
      if (late.length === 1) this.wait();
    }
  }

  private deliver(batch: KvBatch): void {
    for (const listener of [...this.listeners]) listener.batch(batch);
  }

  private wait(): void {
    const next = this.late[0];
    if (!next) return;
    this.timer = setTimeout(
      () => {
        this.late.shift();
        this.deliver(next.batch);
        this.wait();
      },
      Math.max(0, next.due - performance.now()),
    );
  }
}
