/** What one cache tells by its events, written into the prefix index under the keys that prompts have there. */
import { hashCount, type KvEvent, type KvRemoved, type KvStored } from "../../engines/kv-events.ts";
import { chainBlock, chainMedia, chainRoot, textKey } from "../../routing/chain.ts";
import type { PrefixWriter, RootKey } from "../../threads/prefix-types.ts";
import { type EngineTable, type KnownBlock, keyPartOf } from "./engine-table.ts";
import { Pages } from "./pages.ts";

/** Smallest block of the index: engines may have pages of a single token. */
const SMALLEST = 16;
/** Blocks between two looks at the clock. */
const SLICE = 256;

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

/** All mirrors of a process write one index, and share the table of the engines' hashes. */
export interface MirrorStores {
  readonly index: PrefixWriter;
  readonly engine: EngineTable;
}

export class CacheMirror {
  /** Tokens of a block in the index, by what was told last; undefined: nothing yet. */
  blockSize: number | undefined;
  /** Tokens of the engine's own blocks; 0: the next one tells. */
  private engineSize = 0;
  private owner: number;
  private readonly roots = new Map<string, RootKey>();
  private readonly pages: Pages;
  private readonly key = new Int32Array(2);
  /** Keys of the blocks at hand. */
  private readonly chain = new Int32Array(2 * SLICE);
  private readonly isStale: (position: number, keyPart: number) => boolean;

  constructor(
    private readonly stores: MirrorStores,
    readonly member: number,
    private readonly model: string,
    private readonly tally: KvTally,
  ) {
    this.owner = stores.engine.open();
    this.pages = new Pages(this);
    this.isStale = (position, keyPart) => {
      const key = stores.index.keyAt(position);
      return key === undefined || keyPartOf(key[0]) !== keyPart;
    };
  }

  /** All that it told is void. */
  clear(): void {
    const { index, engine } = this.stores;
    index.clear(this.member);
    engine.close(this.owner);
    this.owner = engine.open();
    this.pages.clear();
    this.engineSize = 0;
  }

  /** The cache is no more. */
  close(): void {
    this.stores.engine.close(this.owner);
  }

  /** Applies the events of a batch in order; gives way after each slice. */
  *apply(events: readonly KvEvent[]): Generator<void, void, void> {
    for (const event of events) {
      if (event.kind === "cleared") {
        this.tally.cleared();
        this.clear();
      } else if (!event.isLocalDevice || (event.kind === "stored" && !this.fits(event)))
        this.tally.ignored(hashCount(event.hashes));
      else if (event.kind === "removed") yield* this.removed(event);
      else if (this.engineSize < SMALLEST) yield* this.pages.stored(event);
      else yield* this.stored(event);
      yield;
    }
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

  private *stored(event: KvStored): Generator<void, void, void> {
    const { hashes: words, tokenIds, blockSize, media } = event;
    const count = hashCount(words);
    const parent = event.parent === undefined ? this.root(event) : this.keyOf(event.parent[0]!, event.parent[1]!);
    if (parent === undefined) {
      this.orphan(count);
      return;
    }
    const { key, chain } = this;
    const { index, engine } = this.stores;
    let [hi, lo] = parent;
    for (let from = 0; from < count; from += SLICE) {
      const to = Math.min(count, from + SLICE);
      for (let i = from; i < to; i++) {
        chainBlock(hi, lo, tokenIds, i * blockSize, blockSize, key);
        for (const identifier of media?.[i] ?? []) this.show(identifier);
        hi = key[0]!;
        lo = key[1]!;
        chain[2 * (i - from)] = hi;
        chain[2 * (i - from) + 1] = lo;
      }
      index.warm(chain, to - from);
      engine.warm(this.owner, words, from, to);
      for (let i = from; i < to; i++)
        this.add(chain[2 * (i - from)]!, chain[2 * (i - from) + 1]!, words[2 * i]!, words[2 * i + 1]!);
      if (to < count) yield;
    }
  }

  private *removed({ hashes: words }: KvRemoved): Generator<void, void, void> {
    const count = hashCount(words);
    for (let from = 0; from < count; from += SLICE) {
      const to = Math.min(count, from + SLICE);
      this.stores.engine.warm(this.owner, words, from, to);
      for (let i = from; i < to; i++) {
        const [low, high] = [words[2 * i]!, words[2 * i + 1]!];
        if (this.remove(low, high) || this.pages.removed(low, high)) this.tally.removed(1);
        else this.tally.ignored(1);
      }
      if (to < count) yield;
    }
  }

  root({ lora, cacheSalt }: KvStored): RootKey {
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

  /** Takes what a medium shows into the key at hand. */
  private show(identifier: string): void {
    const [hi, lo] = textKey(identifier);
    chainMedia(this.key, 0, hi, lo);
  }

  /** The key of a block that the engine knows by a hash; undefined: it is not in the index any more. */
  keyOf(hashLow: number, hashHigh: number): RootKey | undefined {
    return this.known(hashLow, hashHigh)?.key;
  }

  /** A block of the index, and the words of the hash that the engine knows it by. */
  add(hi: number, lo: number, hashLow: number, hashHigh: number): void {
    const { index, engine } = this.stores;
    this.tally.stored(1);
    const position = index.add(hi, lo, this.member);
    if (position < 0) return; // the index has counted it
    if (!engine.put(this.owner, hashLow, hashHigh, position, keyPartOf(hi), this.isStale))
      index.drop(position, hi, lo, this.member); // rather unknown than never forgotten
  }

  /** False: the hash is not known. */
  private remove(hashLow: number, hashHigh: number): boolean {
    const { index, engine } = this.stores;
    const known = this.known(hashLow, hashHigh);
    if (known === undefined) return false;
    if (engine.take(known.row)) index.drop(known.position, known.key[0], known.key[1], this.member);
    return true;
  }

  private known(hashLow: number, hashHigh: number): (KnownBlock & { readonly key: RootKey }) | undefined {
    const { index, engine } = this.stores;
    const known = engine.find(this.owner, hashLow, hashHigh);
    if (known === undefined) return undefined;
    const key = index.keyAt(known.position);
    if (key !== undefined && keyPartOf(key[0]) === known.keyPart) return { ...known, key };
    engine.drop(known.row); // the index has thrown it out
    return undefined;
  }
}
