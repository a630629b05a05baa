/**
 * The prefix index: which blocks of prompts the fleet's caches hold, in memory that all threads share. A member is a cache: a worker, or
 * one data-parallel rank of it. A block's key is a 64-bit hash of all ids up to its end, as two 32-bit words.
 */

/** Caches that can be told apart: a worker is one, or each of its data-parallel ranks. */
export const MAX_MEMBERS = 1024;

/** Where the chain of a prompt begins: model, size of a block, adapter and salt in one. */
export type RootKey = readonly [hi: number, lo: number];

/** Room for keys in the index's memory. */
export interface KeyRoom {
  readonly memory: WebAssembly.Memory;
  /** In bytes. */
  readonly at: number;
  readonly keys: Int32Array;
}

/** How keys of blocks are made; they are made in the index's memory. */
export interface PrefixKeys {
  /** Room for the keys of so many blocks, which stays. */
  newRoom(blocks: number): KeyRoom;
  /** The keys of `count` blocks of ids from `start` on, behind a parent; to a room from block number `to` on. */
  hash(
    ids: Uint32Array,
    start: number,
    count: number,
    size: number,
    hi: number,
    lo: number,
    room: KeyRoom,
    to?: number,
  ): void;
}

/** The keys of a prompt's full blocks in order: `keys[2 i]` and `keys[2 i + 1]` are hi and lo of block i. */
export interface ChainKeys {
  readonly keys: Int32Array;
  /** Blocks. */
  readonly count: number;
  /** Tokens of a block. */
  readonly blockSize: number;
  /** Where the keys lie, if it is in an index's memory: so they need not be copied into it. */
  readonly room?: KeyRoom | undefined;
}

/** What the caches hold of a chain. Reused: valid until the next match of the thread. */
export interface PrefixMatch {
  /** Blocks of the chain that a member holds, from the first on. */
  depth(member: number): number;
  /** Its depth is what it told by its events, not what was sent to it. */
  isExact(member: number): boolean;
  /** The whole of it, for people to read: stretches of equal holders, in order. */
  spans(): readonly PrefixSpan[];
}

export interface PrefixSpan {
  /** Number of the block behind the last. */
  readonly end: number;
  readonly exact: readonly number[];
  readonly guessed: readonly number[];
}

/** What a serving thread does. Nothing waits: what cannot be written at once is written a little later. */
export interface PrefixReader {
  /** `now`: milliseconds since 1970; as it is, if not given. */
  match(chain: ChainKeys, now?: number): PrefixMatch;
  /**
   * A prompt was sent to a member, so it will hold the blocks from number `from` on; those before, it holds. Believed for ten seconds of
   * members that send events, and for half an hour after the last use of others. `isRemote`: another gateway sent it. `now`:
   * milliseconds since 1970.
   */
  promise(chain: ChainKeys, from: number, member: number, now: number, isRemote?: boolean): void;
}

/** What control does. */
export interface PrefixWriter {
  /** Something was done with it: before, there is nothing in the index, and its memory is not laid out. */
  readonly isUsed: boolean;
  /** A thread is writing, and may not be running just now: what is written by control all the same is left out. */
  readonly isBusy: boolean;
  /** Blocks that there is room for, and hashes of engines. */
  readonly capacity: number;
  /** A member for a worker's slot on the fleet board and a rank. Throws RangeError when there are too many. */
  claim(slot: number, rank: number): number;
  /** It has left: all that it held is forgotten at once, and its number may be given again. */
  release(member: number): void;
  /** It sends events: what is only guessed of it is believed for seconds. */
  setExact(member: number, isExact: boolean): void;
  /** Forgets all that it holds. */
  clear(member: number): void;
  /** What the cache of a member tells by its events. */
  cache(member: number): PrefixCache;
  /** Throws out what is old where memory is short, and what nobody holds; looks at so many places for blocks. */
  sweep(places: number, now: number): void;
  /** Frees what was known of caches that were cleared or closed, and looks at so many hashes for that. False: nothing is left to do. */
  sweepHashes(hashes: number): boolean;
  stats(): PrefixStats;
  /**
   * Takes what threads have promised of members that send no events since the last call, for other gateways: the keys of `count` blocks,
   * the first of which is number `from` of its chain.
   */
  drain(take: (member: number, keys: Int32Array, count: number, from: number) => void): void;
}

/** Events of a cache, which names its blocks by hashes of its own: two words each, the lower first. */
export interface PrefixCache {
  readonly member: number;
  /** Blocks that are handed over at once, at most. */
  readonly mostTold: number;
  /** Keys of the blocks at hand. */
  readonly keys: Int32Array;
  /** The keys of `count` blocks of ids from `start` on, behind a parent; to `keys` from block number `to` on. */
  hash(parent: RootKey, ids: Uint32Array, start: number, count: number, size: number, to?: number): void;
  /**
   * It has stored the first `count` blocks of `keys`, which follow the one at the position `parent` (-1: they begin a chain), and which it
   * knows by the hashes from number `from` on; without these, they are not found again. Gives the position of the last; -1 where not all
   * could be written now, for want of memory or of the lock.
   */
  stored(count: number, parent: number, hashes?: Int32Array, from?: number): number;
  /** It has removed a copy of `count` blocks. Gives for each whether it was known; valid until the next call. */
  removed(count: number, hashes: Int32Array, from?: number): Uint8Array;
  /** A block that it has told of; undefined: it is not in the index any more. */
  find(low: number, high: number): KnownBlock | undefined;
  /** The block is still there; at -1 it is a chain's root, which always is. */
  isThere(block: KnownBlock): boolean;
  /** All that it told is void. */
  clear(): void;
  /** The cache is no more. */
  close(): void;
}

/** A block of the index. */
export interface KnownBlock {
  /** Where it is, until it is thrown out. */
  readonly position: number;
  readonly key: RootKey;
}

export interface PrefixStats {
  readonly blocks: number;
  /** Places for blocks that are taken, of `capacity`: also those that stay free behind the last block of a chain. */
  readonly places: number;
  /** Memory that blocks and sets take of the cap. */
  readonly bytes: number;
  /** Sets of members that are in use. */
  readonly sets: number;
  readonly evicted: number;
  /** Blocks that were not written, for want of memory or of the lock. */
  readonly dropped: number;
}

/** Keys that stick to members (policy `manual`), and small facts that all threads share. */
export interface StickyTable {
  /** Up to two members of a key, most recent use first; marks the use. Empty: none, or not used for `maxIdleMs`. */
  find(key: string, now: number, maxIdleMs: number): readonly number[];
  /** What `find` would give, without marking the use. */
  look(key: string, now: number, maxIdleMs: number): readonly number[];
  assign(key: string, member: number, now: number): void;
  /** Keys at a member. */
  count(member: number): number;
  /** Keys in all. */
  size(): number;
  /** The next number of a counter that all threads share, by the hash of a name. */
  next(name: string): number;
  /** What `next` would give, without counting. */
  upcoming(name: string): number;
  /** Counts a prompt of so many tokens for a name; `lengths` reads how many there were by log2 buckets of a quarter. */
  countLength(name: string, tokens: number): void;
  lengths(name: string): Uint32Array;
}
