/** What one cache tells by its events, written into the prefix index under the keys that prompts have there. */
import { hashCount, type KvEvent, type KvRemoved, type KvStored } from "../../engines/kv-events.ts";
import { chainMedia, chainRoot, textKey } from "../../routing/chain.ts";
import type { KnownBlock, PrefixCache, PrefixWriter, RootKey } from "../../threads/prefix-types.ts";
import { Pages } from "./pages.ts";

/** Smallest block of the index: engines may have pages of a single token. */
const SMALLEST = 16;

/** How often is waited for a thread that is writing, some tens of microseconds each, before its lock is taken for lost. */
const MOST_WAITS = 4000;

/** The size of the index's blocks for an engine's: the same, or as many of them as make a block of at least 16 tokens. */
export const indexBlockSize = (engineSize: number): number =>
  engineSize >= SMALLEST ? engineSize : engineSize * Math.ceil(SMALLEST / engineSize);

/** Counts of blocks, by what became of them. */
export interface KvTally {
  stored(blocks: number): void;
  removed(blocks: number): void;
  /** Their parent is not known. */
  orphan(blocks: number): void;
  /** They lie elsewhere, or were not known. */
  ignored(blocks: number): void;
  cleared(): void;
}

export class CacheMirror {
  /** Tokens of a block in the index, by what was told last; undefined: nothing yet. */
  blockSize: number | undefined;
  /** Tokens of the engine's own blocks; 0: the next one tells. */
  private engineSize = 0;
  private readonly cache: PrefixCache;
  private readonly roots = new Map<string, RootKey>();
  private readonly pages: Pages;

  constructor(
    private readonly index: PrefixWriter,
    readonly member: number,
    private readonly model: string,
    private readonly tally: KvTally,
  ) {
    this.cache = index.cache(member);
    this.pages = new Pages(this, this.cache);
  }

  /** All that it told is void. */
  clear(): void {
    this.cache.clear();
    this.pages.clear();
    this.engineSize = 0;
  }

  /** The cache is no more. */
  close(): void {
    this.cache.close();
  }

  /** Applies the events of a batch in order; gives way after each slice. */
  *apply(events: readonly KvEvent[]): Generator<void, void, void> {
    for (const event of events) {
      yield* this.untilFree();
      const rest = this.begin(event);
      if (rest !== undefined) yield* rest;
      yield;
    }
  }

  /** The same at once, for little: what gives way by generators costs as much as all else of a small batch. */
  applyNow(events: readonly KvEvent[]): void {
    for (const event of events) {
      if (this.index.isBusy) for (const _ of this.untilFree());
      const rest = this.begin(event);
      if (rest !== undefined) for (const _ of rest);
    }
  }

  /** Applies an event, or gives how it is applied slice by slice. */
  private begin(event: KvEvent): Generator<void, void, void> | undefined {
    if (event.kind === "cleared") {
      this.tally.cleared();
      this.clear();
      return undefined;
    }
    const count = hashCount(event.hashes);
    if (!event.isLocalDevice || (event.kind === "stored" && !this.fits(event))) {
      this.tally.ignored(count);
      return undefined;
    }
    const isSmall = count <= this.cache.mostTold;
    if (event.kind === "removed") {
      if (!isSmall) return this.removed(event, count);
      this.removeSlice(event, 0, count);
    } else if (this.engineSize < SMALLEST) return this.pages.stored(event);
    else {
      const parent = this.behind(event);
      if (parent === undefined) this.orphan(count);
      else if (!isSmall) return this.stored(event, count, parent);
      else this.storeSlice(event, 0, count, parent);
    }
    return undefined;
  }

  /** What the index leaves out of a removal, it would believe for ever. */
  private *untilFree(): Generator<void, void, void> {
    for (let i = 0; i < MOST_WAITS && this.index.isBusy; i++) yield;
  }

  /** The first block that a cache tells of says how large its blocks are; others are of another kind of layer. */
  private fits({ blockSize, media }: KvStored): boolean {
    if (this.engineSize === 0) {
      this.engineSize = blockSize;
      this.blockSize = indexBlockSize(blockSize);
    }
    const hasMedia = media?.some((shown) => shown !== undefined) === true;
    return blockSize === this.engineSize && !(hasMedia && blockSize < SMALLEST);
  }

  private *stored(event: KvStored, all: number, parent: KnownBlock): Generator<void, void, void> {
    const { cache } = this;
    let before = parent;
    for (let from = 0; from < all; from += cache.mostTold) {
      if (from > 0) {
        yield;
        yield* this.untilFree();
        if (!cache.isThere(before)) {
          this.orphan(all - from); // the index has thrown it out meanwhile
          return;
        }
      }
      const count = Math.min(all - from, cache.mostTold);
      const position = this.storeSlice(event, from, count, before);
      if (position < 0) {
        this.tally.stored(all - from - count); // the index counts what it left out of them
        return;
      }
      before = { position, key: [cache.keys[2 * count - 2]!, cache.keys[2 * count - 1]!] };
    }
  }

  /** So many blocks behind another one; gives the position of the last, below 0 where not all could be written. */
  private storeSlice(event: KvStored, from: number, count: number, { position, key }: KnownBlock): number {
    const { cache } = this;
    const { hashes, tokenIds, blockSize, media } = event;
    if (media === undefined) cache.hash(key, tokenIds, from * blockSize, count, blockSize);
    else this.hashShown(key, event, from, count);
    this.tally.stored(count);
    return cache.stored(count, position, hashes, from);
  }

  /** Keys of blocks some of which show media. */
  private hashShown(parent: RootKey, { tokenIds, blockSize, media }: KvStored, from: number, count: number): void {
    const { cache } = this;
    let key = parent;
    for (let i = 0; i < count; i++) {
      cache.hash(key, tokenIds, (from + i) * blockSize, 1, blockSize, i);
      for (const identifier of media?.[from + i] ?? []) {
        const [hi, lo] = textKey(identifier);
        chainMedia(cache.keys, 2 * i, hi, lo);
      }
      key = [cache.keys[2 * i]!, cache.keys[2 * i + 1]!];
    }
  }

  private *removed(event: KvRemoved, all: number): Generator<void, void, void> {
    const { mostTold } = this.cache;
    for (let from = 0; from < all; from += mostTold) {
      if (from > 0) {
        yield;
        yield* this.untilFree();
      }
      this.removeSlice(event, from, Math.min(all - from, mostTold));
    }
  }

  private removeSlice({ hashes }: KvRemoved, from: number, count: number): void {
    const known = this.cache.removed(count, hashes, from);
    let removed = 0;
    for (let i = 0; i < count; i++) {
      const at = 2 * (from + i);
      if (known[i] === 1 || this.pages.removed(hashes[at]!, hashes[at + 1]!)) removed++;
    }
    if (removed > 0) this.tally.removed(removed);
    if (removed < count) this.tally.ignored(count - removed);
  }

  /** What the blocks of an event follow; undefined: it is not in the index any more. */
  behind(event: KvStored): KnownBlock | undefined {
    const { parent } = event;
    return parent === undefined ? { position: -1, key: this.root(event) } : this.cache.find(parent[0]!, parent[1]!);
  }

  private root({ lora, cacheSalt }: KvStored): RootKey {
    const size = this.blockSize!;
    if (cacheSalt !== undefined) return chainRoot(this.model, size, lora, cacheSalt);
    const name = `${size} ${lora === undefined ? "" : `+${lora}`}`;
    let root = this.roots.get(name);
    if (root === undefined) {
      root = chainRoot(this.model, size, lora);
      this.roots.set(name, root);
    }
    return root;
  }

  /** Blocks behind one that is not known. */
  orphan(blocks: number): void {
    this.tally.orphan(blocks);
  }

  /** The first block of the cache's `keys`, and the words of the hash that the engine knows it by; gives where it is, below 0 if nowhere. */
  add(parent: number, hash: Int32Array): number {
    this.tally.stored(1);
    return this.cache.stored(1, parent, hash);
  }
}
