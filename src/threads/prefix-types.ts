/**
 * The prefix index: which blocks of prompts the fleet's caches hold, in memory that all threads share. A member is a cache: a worker, or
 * one data-parallel rank of it. A block's key is a 64-bit hash of all ids up to its end, as two 32-bit words.
 */

/** Where the chain of a prompt begins: model, size of a block, adapter and salt in one. */
export type RootKey = readonly [hi: number, lo: number];

/** The keys of a prompt's full blocks in order: `keys[2 i]` and `keys[2 i + 1]` are hi and lo of block i. */
export interface ChainKeys {
  readonly keys: Int32Array;
  /** Blocks. */
  readonly count: number;
  /** Tokens of a block. */
  readonly blockSize: number;
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
  /** Blocks that there is room for: positions are below it. */
  readonly capacity: number;
  /** A member for a worker's slot on the fleet board and a rank. Throws RangeError when there are too many. */
  claim(slot: number, rank: number): number;
  /** It has left: all that it held is forgotten at once, and its number may be given again. */
  release(member: number): void;
  /** It sends events: what is only guessed of it is believed for seconds. */
  setExact(member: number, isExact: boolean): void;
  /** Forgets all that it holds. */
  clear(member: number): void;
  /** Reads where so many blocks belong, so that all are on their way from memory when they are added one by one. */
  warm(keys: Int32Array, count: number): void;
  /** Position of the block in the index; -1 where it could not be written now, for want of memory or of the lock. */
  add(hi: number, lo: number, member: number): number;
  /** False where the block at `position` is another by now, or the lock was not to be had. */
  drop(position: number, hi: number, lo: number, member: number): boolean;
  keyAt(position: number): RootKey | undefined;
  /** Throws out what is old where memory is short, and what nobody holds; looks at so many entries. */
  sweep(entries: number, now: number): void;
  stats(): PrefixStats;
  /**
   * Takes what threads have promised of members that send no events since the last call, for other gateways: the keys of `count` blocks,
   * the first of which is number `from` of its chain.
   */
  drain(take: (member: number, keys: Int32Array, count: number, from: number) => void): void;
}

export interface PrefixStats {
  readonly blocks: number;
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
