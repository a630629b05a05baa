/**
 * Caches with pages that are smaller than a block of the index: several pages make a block. Engines tell of pages each after its parent,
 * and prompts part at any page: all of them begin with the same few ids of a template.
 */
import { type HashWords, hashCount, type KvStored } from "../../engines/kv-events.ts";
import type { KnownBlock, PrefixCache } from "../../threads/prefix-types.ts";
import type { CacheMirror } from "./mirror.ts";
import { PageTable } from "./page-table.ts";

const SLICE = 256;

export class Pages {
  private table: PageTable | undefined;
  /** The block before the one at hand. */
  private before: KnownBlock = { position: -1, key: [0, 0] };
  /** The block that the last page is in, and how many of its ids have come; 0: it begins with the next page. */
  private block = new Uint32Array(0);
  private filled = 0;
  /** The page that was stored last, if it ends inside of the block. */
  private last: HashWords | undefined;

  constructor(
    private readonly mirror: CacheMirror,
    private readonly cache: PrefixCache,
  ) {}

  clear(): void {
    this.table = undefined;
    this.last = undefined;
  }

  *stored(event: KvStored): Generator<void, void, void> {
    const { mirror, cache } = this;
    const { hashes: words, tokenIds, blockSize: page } = event;
    const count = hashCount(words);
    const size = mirror.blockSize!;
    if (this.block.length !== size) this.block = new Uint32Array(size);
    if (!this.goTo(event)) {
      mirror.orphan(count);
      return;
    }
    this.table ??= new PageTable(size);
    const { table, block } = this;
    for (let i = 0; i < count; i++) {
      const [low, high] = [words[2 * i]!, words[2 * i + 1]!];
      const from = this.filled;
      for (let id = 0; id < page; id++) block[from + id] = tokenIds[i * page + id]!;
      this.filled = from + page;
      if (this.filled === size) {
        cache.hash(this.before.key, block, 0, 1, size);
        const key = [cache.keys[0]!, cache.keys[1]!] as const;
        const position = mirror.add(this.before.position, words.subarray(2 * i, 2 * i + 2));
        // what could not be written has a place nowhere, nor have those behind it
        this.before = { position: position < 0 ? NOWHERE : position, key };
        this.filled = 0;
      } else {
        if (from === 0) table.begin(this.before, NO_IDS);
        table.put(low, high, block, from, this.filled);
      }
      if (i % SLICE === SLICE - 1) yield;
    }
    this.last = this.filled === 0 ? undefined : words.slice(-2);
  }

  /** True if a page ended inside of a block with it. */
  removed(low: number, high: number): boolean {
    this.last = undefined;
    return this.table?.delete(low, high) === true;
  }

  /** To where the event goes on. False: that is not known. */
  private goTo(event: KvStored): boolean {
    const { mirror, table, cache, last } = this;
    const { parent } = event;
    if (parent !== undefined && parent[0] === last?.[0] && parent[1] === last?.[1] && cache.isThere(this.before))
      return true;
    this.filled = 0;
    const start = mirror.behind(event);
    if (start !== undefined) {
      this.before = start;
      return true;
    }
    const words = parent!;
    const open = table?.find(words[0]!, words[1]!);
    if (open === undefined || !cache.isThere(open.before)) return false;
    this.before = open.before;
    this.block.set(open.ids);
    this.filled = open.ids.length;
    // the block as it was may have gone on in another way; and what was gone on from will be again
    table!.begin(open.before, open.ids);
    table!.put(words[0]!, words[1]!, this.block, this.filled, this.filled);
    return true;
  }
}

const NO_IDS = new Uint32Array(0);
/** No position. */
const NOWHERE = 2 ** 31 - 1;
