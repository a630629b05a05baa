/** A block as an event tells it. */
export interface StoredBlock {
  readonly hash: number;
  readonly tokenIds: Uint32Array;
}

/** What happened to the prefix cache. A `stored` event is a chain of blocks after `parent`. */
export type KvEvent =
  | { readonly kind: "stored"; readonly parent: number | undefined; readonly blocks: StoredBlock[] }
  | { readonly kind: "removed"; readonly hashes: number[] }
  | { readonly kind: "cleared" };

/** Collects the events of a step. While nobody listens it only notes that there were some. */
export class KvEventLog {
  /** Whether events are kept. */
  listening = false;
  private changed = false;
  private events: KvEvent[] = [];

  stored(parent: number | undefined, hash: number, tokenIds: Uint32Array): void {
    this.changed = true;
    if (!this.listening) return;
    const last = this.events.at(-1);
    if (last?.kind === "stored" && last.blocks.at(-1)?.hash === parent) last.blocks.push({ hash, tokenIds });
    else this.events.push({ kind: "stored", parent, blocks: [{ hash, tokenIds }] });
  }

  removed(hash: number): void {
    this.changed = true;
    if (!this.listening) return;
    const last = this.events.at(-1);
    if (last?.kind === "removed") last.hashes.push(hash);
    else this.events.push({ kind: "removed", hashes: [hash] });
  }

  cleared(): void {
    this.changed = true;
    if (this.listening) this.events.push({ kind: "cleared" });
  }

  /** The events since the last call, or undefined when nothing happened. */
  take(): KvEvent[] | undefined {
    if (!this.changed) return undefined;
    const { events } = this;
    this.changed = false;
    this.events = [];
    return events;
  }
}
