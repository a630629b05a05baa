/**
 * Where pages end within blocks of the index, for a cache whose pages are smaller: what is before the block, and its ids up to there. What
 * two prompts have in common may end at any page, so all are remembered until many others have come, or were gone on from, since.
 */
import type { KnownBlock } from "../../threads/prefix-types.ts";

/** Blocks that are remembered: with the rows of their pages some 260 bytes each, once they have come. */
const BLOCKS = 16_384;
/** Numbers of blocks begin again behind this. */
const NUMBERS = 2 ** 26;
/** Rows that lie together; the one of the oldest block gives way. */
const BUCKET = 8;
const BUCKETS = 2 * BLOCKS;
/** Cells of a row: the words of the engine's hash, and number of the block and ids in it up to there; 0 = no row. */
const Row = { low: 0, high: 1, end: 2, SIZE: 3 } as const;
const MOST_IDS = 32;

/** A place inside a block. */
export interface OpenEnd {
  /** The block before; at -1: the root. */
  readonly before: KnownBlock;
  /** Ids of the block up to here; valid until the next call. */
  readonly ids: Uint32Array;
}

export class PageTable {
  // pages of shared memory that were never written to take no room
  private readonly rows = new Int32Array(new SharedArrayBuffer(BUCKETS * BUCKET * Row.SIZE * 4));
  private readonly ids: Uint32Array;
  /** Of the block before each: its key, and where it is. */
  private readonly before = new Int32Array(new SharedArrayBuffer(BLOCKS * 3 * 4));
  /** Number of the newest block. */
  private newest = 0;

  /** `size`: ids of a block, fewer than 32. */
  constructor(private readonly size: number) {
    this.ids = new Uint32Array(new SharedArrayBuffer(BLOCKS * size * 4));
  }

  /** A new block behind another, of which these ids are known. */
  begin({ position, key }: KnownBlock, ids: Uint32Array): void {
    this.newest = (this.newest + 1) % NUMBERS;
    const at = this.newest % BLOCKS;
    this.before[3 * at] = key[0];
    this.before[3 * at + 1] = key[1];
    this.before[3 * at + 2] = position;
    this.ids.set(ids, at * this.size);
  }

  /** A page ends in the newest block, behind so many ids; the last ones are those of `block` from `from` on. */
  put(low: number, high: number, block: Uint32Array, from: number, count: number): void {
    const at = (this.newest % BLOCKS) * this.size;
    for (let i = from; i < count; i++) this.ids[at + i] = block[i]!;
    let row = this.locate(low, high);
    if (row < 0) row = this.oldest(low, high);
    this.rows[row + Row.low] = low;
    this.rows[row + Row.high] = high;
    this.rows[row + Row.end] = this.newest * MOST_IDS + count;
  }

  find(low: number, high: number): OpenEnd | undefined {
    const row = this.locate(low, high);
    if (row < 0) return undefined;
    const end = this.rows[row + Row.end]! >>> 0;
    const at = Math.floor(end / MOST_IDS) % BLOCKS;
    const start = at * this.size;
    return {
      before: {
        position: this.before[3 * at + 2]!,
        key: [this.before[3 * at]!, this.before[3 * at + 1]!],
      },
      ids: this.ids.subarray(start, start + (end % MOST_IDS)),
    };
  }

  /** True if the page was known. */
  delete(low: number, high: number): boolean {
    const row = this.locate(low, high);
    if (row >= 0) this.rows[row + Row.end] = 0;
    return row >= 0;
  }

  private locate(low: number, high: number): number {
    const { rows } = this;
    const start = bucketOf(low, high);
    for (let at = start; at < start + BUCKET * Row.SIZE; at += Row.SIZE)
      if (rows[at] === low && rows[at + Row.high] === high && this.age(at) < BLOCKS) return at;
    return -1;
  }

  private oldest(low: number, high: number): number {
    const start = bucketOf(low, high);
    let [oldest, age] = [start, -1];
    for (let at = start; at < start + BUCKET * Row.SIZE; at += Row.SIZE) {
      const its = this.age(at);
      if (its > age) [oldest, age] = [at, its];
    }
    return oldest;
  }

  /** Blocks that have begun since that of a row; of no row, more than are remembered. */
  private age(row: number): number {
    const end = this.rows[row + Row.end]! >>> 0;
    if (end === 0) return NUMBERS;
    return (this.newest - Math.floor(end / MOST_IDS) + NUMBERS) % NUMBERS;
  }
}

function bucketOf(low: number, high: number): number {
  let word = Math.imul(low ^ (high >>> 13), 0x85ebca77);
  word = Math.imul(word ^ (word >>> 15) ^ high, 0xc2b2ae3d);
  return ((word ^ (word >>> 16)) & (BUCKETS - 1)) * BUCKET * Row.SIZE;
}
