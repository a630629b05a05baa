import { KvEventLog } from "./kv-events.ts";

/** One block of the paged KV cache. */
export interface KvBlock {
  /** Chained hash of all tokens up to the end of this block; 0 while the block is not full or caching is off. */
  hash: number;
  /** Sequences that use it. At 0 a hashed block stays cached until it is evicted. */
  refs: number;
  /** Of a full block: its tokens, the hash of the block before it, and an older copy of it. */
  tokenIds?: Uint32Array;
  parent?: number;
  twin?: KvBlock | undefined;
}

/**
 * What becomes of a full block whose prefix is cached already: engines with a table of blocks keep both copies (vLLM), engines
 * with a radix tree let the sequence use the tree's block and free its own (SGLang).
 */
export type DuplicateStyle = "copies" | "shares";

/** Hash of the empty prefix, where every chain starts. */
export const ROOT_HASH = 0x9e3779b1;

/**
 * Chained hash of a block: the hash before it and its own ids `ids[from .. to)`. 53 bits in a number, so that it can key a Map;
 * never 0.
 */
export function chainHash(parent: number, ids: ArrayLike<number>, from: number, to: number): number {
  let low = parent | 0;
  let high = Math.floor(parent / 0x100000000) ^ 0x85ebca6b;
  for (let i = from; i < to; i++) {
    const id = ids[i]!;
    low = Math.imul(low ^ id, 0x01000193) ^ (low >>> 15);
    high = Math.imul(high ^ id, 0xcc9e2d51) ^ (high >>> 13);
  }
  low ^= high >>> 7;
  low = Math.imul(low ^ (low >>> 16), 0x7feb352d);
  return (high & 0x1fffff) * 0x100000000 + (low >>> 0) || 1;
}

/**
 * Paged KV cache with prefix caching: blocks in use are counted, full blocks are found again by their chained hash, and blocks
 * that nobody uses are evicted least recently used first. Pure bookkeeping; no token data is kept.
 */
export class KvCache {
  readonly totalBlocks: number;
  readonly events = new KvEventLog();
  /** Blocks that a sequence uses. */
  inUse = 0;
  /** Blocks dropped from the cache so far. */
  evicted = 0;
  private readonly byHash = new Map<number, KvBlock>();
  /** Hashed blocks without users, oldest first. */
  private readonly idle = new Set<KvBlock>();

  constructor(
    kvTokens: number,
    readonly blockSize: number,
    private readonly evictAbove: number,
    private readonly evictTo: number,
    private readonly prefixCaching: boolean,
    private readonly duplicates: DuplicateStyle = "shares",
  ) {
    this.totalBlocks = Math.floor(kvTokens / blockSize);
  }

  /** Cached blocks that nobody uses at the moment. */
  get idleBlocks(): number {
    return this.idle.size;
  }

  /** Blocks that can be had, evicting if need be. */
  get available(): number {
    return this.totalBlocks - this.inUse;
  }

  /**
   * Longest cached prefix of `ids`, at most `maxTokens` of it: takes its blocks into use and returns them in order.
   */
  takePrefix(ids: ArrayLike<number>, maxTokens: number): KvBlock[] {
    const blocks: KvBlock[] = [];
    this.walk(ids, maxTokens, (block) => {
      this.use(block);
      blocks.push(block);
    });
    return blocks;
  }

  /** How many tokens of `ids` are cached now, in whole blocks, without touching anything. */
  matchedTokens(ids: ArrayLike<number>, maxTokens: number): number {
    let count = 0;
    this.walk(ids, maxTokens, () => count++);
    return count * this.blockSize;
  }

  private use(block: KvBlock): void {
    if (block.refs++ > 0) return;
    this.idle.delete(block);
    this.inUse++;
  }

  private walk(ids: ArrayLike<number>, maxTokens: number, found: (block: KvBlock) => void): void {
    if (!this.prefixCaching) return;
    const { blockSize } = this;
    let hash = ROOT_HASH;
    for (let at = 0; at + blockSize <= maxTokens; at += blockSize) {
      hash = chainHash(hash, ids, at, at + blockSize);
      const block = this.byHash.get(hash);
      if (!block) return;
      found(block);
    }
  }

  /** A fresh block in use, or undefined when all are taken. */
  allocate(): KvBlock | undefined {
    if (this.inUse + this.idle.size >= this.totalBlocks && !this.evictOne()) return undefined;
    this.inUse++;
    return { hash: 0, refs: 1 };
  }

  /** Every findable block, parents before children, copies one by one. */
  *blocks(): Generator<KvBlock> {
    for (const newest of this.byHash.values())
      for (let block: KvBlock | undefined = newest; block; block = block.twin) yield block;
  }

  /**
   * A block of one sequence became full: makes it findable, with the tokens that `idsOf` gives. Returns the block that the sequence
   * goes on with: its own, or the one that was there before.
   */
  store(block: KvBlock, hash: number, parent: number, idsOf: () => Uint32Array): KvBlock {
    if (!this.prefixCaching) return block;
    const known = this.byHash.get(hash);
    if (known && this.duplicates === "shares") {
      this.use(known);
      this.inUse--;
      return known;
    }
    const tokenIds = idsOf();
    block.hash = hash;
    block.tokenIds = tokenIds;
    block.parent = parent;
    block.twin = known;
    this.byHash.set(hash, block);
    this.events.stored(parent === ROOT_HASH ? undefined : parent, hash, tokenIds);
    return block;
  }

  /** A sequence lets go of its blocks. Tails become evictable before heads. */
  release(blocks: readonly KvBlock[]): void {
    for (let i = blocks.length - 1; i >= 0; i--) {
      const block = blocks[i]!;
      if (--block.refs > 0) continue;
      this.inUse--;
      if (block.hash !== 0) this.idle.add(block);
    }
  }

  /** Applies the water marks; returns how many blocks went. */
  evict(): number {
    if (this.inUse + this.idle.size <= this.evictAbove * this.totalBlocks) return 0;
    const target = this.evictTo * this.totalBlocks;
    let count = 0;
    while (this.inUse + this.idle.size > target && this.evictOne()) count++;
    return count;
  }

  /** Forgets every cached block; those in use are only unlinked. */
  flush(): void {
    for (const block of this.blocks()) block.hash = 0;
    this.byHash.clear();
    this.idle.clear();
    this.events.cleared();
  }

  private evictOne(): boolean {
    for (const block of this.idle) {
      this.idle.delete(block);
      this.unlink(block);
      this.events.removed(block.hash);
      this.evicted++;
      return true;
    }
    return false;
  }

  /** Takes one copy out of those with its hash. */
  private unlink(block: KvBlock): void {
    const newest = this.byHash.get(block.hash);
    if (newest !== block) {
      for (let at = newest; at; at = at.twin) if (at.twin === block) at.twin = block.twin;
    } else if (block.twin) this.byHash.set(block.hash, block.twin);
    else this.byHash.delete(block.hash);
  }
}
