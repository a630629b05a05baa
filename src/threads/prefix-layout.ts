/**
 * The memory of the prefix index. This module owns its layout; nobody else computes an offset.
 *
 * Layout, in 32-bit integers: a header, two bitmaps of members, the members, the table of blocks, what is known of the sets of members,
 * their bits, and (in 16 bits each) the table in which sets are found; then a ring a thread of what it has promised.
 */
import { MAX_THREADS } from "./board-layout.ts";

/** Caches that can be told apart: a worker is one, or each of its data-parallel ranks. */
export const MAX_MEMBERS = 1024;
/** Cells of a bitmap of members. */
export const MEMBER_WORDS = MAX_MEMBERS / 32;

export const Header = {
  /** 0 = free; else the number of the thread that writes, plus one. */
  lock: 0,
  /** Counts what makes ids of sets mean something else than before. */
  version: 1,
  threads: 2,
  buckets: 3,
  sets: 4,
  /** Sets that were ever made: their ids are 1 to this. */
  setsMade: 5,
  /** First of those that were given up, which are a list. */
  firstFree: 6,
  freeSets: 7,
  /** Sets that no entry has, and that were not given up yet. */
  idleSets: 8,
  /** Entry at which the sweep goes on. */
  hand: 9,
  /** Seconds since 1970, as somebody last told. */
  clock: 10,
  /** Members are below this number. */
  membersEnd: 11,
  lastClaimed: 12,
  blocks: 13,
  evicted: 14,
  dropped: 15,
  SIZE: 64,
} as const;

/** Cells of a member. */
export const Member = {
  /** The worker's slot on the fleet board plus one; 0 = nobody has the number. */
  slot: 0,
  rank: 1,
  /** Counts how often all that it held was forgotten. */
  generation: 2,
  SIZE: 4,
} as const;

/**
 * Cells of an entry of the table: a block. A key lies in one of two buckets, which its words choose, so that nothing has to be moved: an
 * entry that is thrown out leaves its place free, and the position of one that stays never changes.
 */
export const Entry = {
  hi: 0,
  lo: 1,
  /** Set of those that told that they hold it << 16 | set of those of which it is guessed; 0 = no entry. */
  sets: 2,
  /** When it was last used << 16 | when it was last guessed: see `usedTime` and `guessedTime`. */
  stamp: 3,
  SIZE: 4,
} as const;
/** Entries of a bucket: two lines of the processor's cache. */
export const BUCKET = 8;
export const BUCKET_CELLS = BUCKET * Entry.SIZE;

/** Cells of what is known of a set. */
export const Facts = {
  /** XOR of its members' hashes. */
  hash: 0,
  /** Members. */
  size: 1,
  /** Entries that have it, or more where a thread died; -1 = given up. */
  uses: 2,
  next: 3,
  SIZE: 4,
} as const;
/** Ids are 16 bits, and 0 is the empty set. */
const MOST_SETS = 65_534;
/** Bytes of a set: what is known of it, its bits, and places to find it. */
export const SET_BYTES = (Facts.SIZE + MEMBER_WORDS) * 4 + 8;
/** Part of the memory that is for sets. */
const SETS_PART = 16;

export const ENTRY_BYTES = Entry.SIZE * 4;
/** Bytes of a row of the table from engines' hashes to positions, which is control's and has its share of the memory. */
export const ENGINE_ROW_BYTES = 12;

/** A ring of promises: [written, read], then records. Each cell of the two has a cache line for itself. */
export const Ring = { written: 0, read: 16, records: 32, CELLS: 16_384, SIZE: 32 + 16_384 } as const;

/** Times of entries have 16 bits. The unit of use is four seconds: three days; that of guesses is one: 18 hours. */
export const usedTime = (seconds: number): number => (seconds >>> 2) & 0xffff;
export const guessedTime = (seconds: number): number => seconds & 0xffff;
/** Units from a time of an entry to another; 0 where the other is a little earlier, as clocks of threads may be. */
export function elapsed(from: number, to: number): number {
  const units = (to - from) & 0xffff;
  return units > 0xffff - MOST_SKEW ? 0 : units;
}
const MOST_SKEW = 64;
export const stampOf = (used: number, guessed: number): number => (used << 16) | guessed;

/** Seconds for which a guess is believed, of members that send events... */
export const PROMISE_S = 10;
/** ...and of others. */
export const GUESS_S = 1800;

/** The memory of the index, and the ways to its parts. */
export class PrefixCells {
  readonly cells: Int32Array;
  /** Ids of sets by their hashes. */
  readonly found: Uint16Array;
  readonly threads: number;
  readonly buckets: number;
  /** Ids of sets are below this. */
  readonly sets: number;
  readonly live = Header.SIZE;
  /** Members that send events. */
  readonly exact = Header.SIZE + MEMBER_WORDS;
  private readonly members = Header.SIZE + 2 * MEMBER_WORDS;
  readonly table = this.members + MAX_MEMBERS * Member.SIZE;
  readonly facts: number;
  readonly bits: number;
  private readonly rings: number;

  constructor(readonly memory: SharedArrayBuffer) {
    this.cells = new Int32Array(memory);
    this.threads = this.cells[Header.threads]!;
    this.buckets = this.cells[Header.buckets]!;
    this.sets = this.cells[Header.sets]!;
    this.facts = this.table + this.buckets * BUCKET_CELLS;
    this.bits = this.facts + this.sets * Facts.SIZE;
    const found = this.bits + this.sets * MEMBER_WORDS;
    const places = placesFor(this.sets);
    this.found = new Uint16Array(memory, found * 4, places);
    this.rings = found + places / 2;
  }

  static create(threads: number, megabytes: number): PrefixCells {
    if (threads < 1 || threads > MAX_THREADS) throw new RangeError(`threads must be 1 to ${MAX_THREADS}`);
    if (!(megabytes > 0) || megabytes > 4096) throw new RangeError("the prefix index takes up to 4096 MB");
    const bytes = megabytes * 2 ** 20;
    const sets = Math.max(16, Math.min(MOST_SETS, Math.floor(bytes / SETS_PART / SET_BYTES)));
    const blockBytes = ENTRY_BYTES + ENGINE_ROW_BYTES;
    const buckets = Math.max(1, Math.floor((bytes - sets * SET_BYTES) / (BUCKET * blockBytes)));
    const table = Header.SIZE + 2 * MEMBER_WORDS + MAX_MEMBERS * Member.SIZE;
    const cells = table + buckets * BUCKET_CELLS + sets * (Facts.SIZE + MEMBER_WORDS) + placesFor(sets) / 2;
    const memory = new SharedArrayBuffer((cells + threads * Ring.SIZE) * 4);
    const header = new Int32Array(memory, 0, Header.SIZE);
    header[Header.threads] = threads;
    header[Header.buckets] = buckets;
    header[Header.sets] = sets;
    header[Header.clock] = Math.floor(Date.now() / 1000);
    header[Header.lastClaimed] = MAX_MEMBERS - 1;
    return new PrefixCells(memory);
  }

  /** Blocks that there is room for. */
  get capacity(): number {
    return this.buckets * BUCKET;
  }

  member(member: number): number {
    return this.members + member * Member.SIZE;
  }

  /** First cell of the bits of a set. */
  bitsOf(set: number): number {
    return this.bits + set * MEMBER_WORDS;
  }

  factsOf(set: number): number {
    return this.facts + set * Facts.SIZE;
  }

  ring(thread: number): number {
    return this.rings + thread * Ring.SIZE;
  }

  /** Words of a bitmap that can have members now. */
  words(): number {
    return (this.load(Header.membersEnd) + 31) >>> 5;
  }

  isLive(member: number): boolean {
    return ((this.load(this.live + (member >>> 5)) >>> (member & 31)) & 1) === 1;
  }

  sendsEvents(member: number): boolean {
    return ((this.load(this.exact + (member >>> 5)) >>> (member & 31)) & 1) === 1;
  }

  /** Sets or clears the bit of a member in one of the two bitmaps. */
  setBit(bitmap: number, member: number, isSet: boolean): void {
    const bit = 1 << (member & 31);
    if (isSet) Atomics.or(this.cells, bitmap + (member >>> 5), bit);
    else Atomics.and(this.cells, bitmap + (member >>> 5), ~bit);
  }

  load(at: number): number {
    return Atomics.load(this.cells, at);
  }

  store(at: number, value: number): void {
    Atomics.store(this.cells, at, value);
  }

  add(at: number, value: number): void {
    Atomics.add(this.cells, at, value);
  }

  /** Whether the lock was got; looks so many times. */
  tryLock(owner: number, looks: number): boolean {
    for (let i = 0; i < looks; i++)
      if (this.load(Header.lock) === 0 && Atomics.compareExchange(this.cells, Header.lock, 0, owner) === 0) return true;
    return false;
  }

  /** Does nothing where another has the lock. */
  unlock(owner: number): void {
    Atomics.compareExchange(this.cells, Header.lock, owner, 0);
  }
}

/** Places of the table in which so many sets are found: a power of two, at least half of them free. */
function placesFor(sets: number): number {
  return 2 ** Math.ceil(Math.log2(sets * 2));
}
