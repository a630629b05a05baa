/**
 * Keys that stick to members, and small counts for policies, in memory that all threads share.
 *
 * Layout, in 32-bit integers: a header; keys a member; counters; rows of lengths; then the keys. A key lies in the bucket that its hash chooses, in
 * a slot [hash, two words; first member + 1 | second + 1 << 16; when it was used, in seconds]. Nobody locks: who takes a slot marks it
 * as taken, fills it, and lets it be seen by its hash.
 */
import { MAX_MEMBERS, type StickyTable } from "./prefix-types.ts";

// The header: the seed of the hashes in two words, keys, the bucket that is tidied up next.
const KEYS = 2;
const HAND = 3;
const HEADER = 16;
const COUNTERS = 1024;
const NAMES = 64;
/** Quarters of a power of two, up to 2 ** 32. */
export const LENGTHS = 128;
const LENGTH_ROW = 1 + LENGTHS;
const BUCKETS = 8192;
const SLOTS = 8;
const SLOT = 4;

const PER_MEMBER = HEADER;
const COUNTER = PER_MEMBER + MAX_MEMBERS;
const ROWS = COUNTER + COUNTERS;
const TABLE = ROWS + NAMES * LENGTH_ROW;
const SIZE = TABLE + BUCKETS * SLOTS * SLOT;

const FREE = 0n;
const TAKEN = -1n;
const NONE: readonly number[] = [];

export class StickyBoard implements StickyTable {
  private readonly cells: Int32Array;
  private readonly hashes: BigInt64Array;
  private readonly seed: bigint;

  private constructor(readonly memory: SharedArrayBuffer) {
    this.cells = new Int32Array(memory);
    this.hashes = new BigInt64Array(memory);
    this.seed = BigInt.asUintN(64, this.hashes[0]!);
  }

  static create(): StickyBoard {
    const memory = new SharedArrayBuffer(SIZE * 4);
    new Uint8Array(memory).set(crypto.getRandomValues(new Uint8Array(8)));
    return new StickyBoard(memory);
  }

  /** The board that another thread created. */
  static open(memory: SharedArrayBuffer): StickyBoard {
    return new StickyBoard(memory);
  }

  find(key: string, now: number, maxIdleMs: number): readonly number[] {
    this.tidy(now, maxIdleMs);
    const at = this.locate(this.hash(key));
    if (at < 0) return NONE;
    if (this.isIdle(at, now, maxIdleMs)) {
      this.give(at);
      return NONE;
    }
    Atomics.store(this.cells, at + 3, seconds(now));
    return membersOf(Atomics.load(this.cells, at + 2));
  }

  look(key: string, now: number, maxIdleMs: number): readonly number[] {
    const at = this.locate(this.hash(key));
    return at < 0 || this.isIdle(at, now, maxIdleMs) ? NONE : membersOf(Atomics.load(this.cells, at + 2));
  }

  assign(key: string, member: number, now: number): void {
    const hash = this.hash(key);
    const known = this.locate(hash);
    if (known >= 0) {
      this.putFirst(known, member);
      Atomics.store(this.cells, known + 3, seconds(now));
      return;
    }
    const at = this.take(hash, now);
    if (at < 0) return;
    Atomics.store(this.cells, at + 2, member + 1);
    Atomics.store(this.cells, at + 3, seconds(now));
    Atomics.add(this.cells, PER_MEMBER + member, 1);
    Atomics.add(this.cells, KEYS, 1);
    Atomics.store(this.hashes, at / 2, hash);
    // another thread may have done the same meanwhile: the first of the bucket is the one that is found
    const first = this.locate(hash);
    if (first >= 0 && first !== at) {
      this.give(at);
      this.putFirst(first, member);
    }
  }

  count(member: number): number {
    return Atomics.load(this.cells, PER_MEMBER + member);
  }

  size(): number {
    return Atomics.load(this.cells, KEYS);
  }

  /** No key is at the member any longer: its number may be given again. */
  forgetMember(member: number): void {
    for (let at = TABLE; at < SIZE; at += SLOT) {
      const before = Atomics.load(this.cells, at + 2);
      if ((before & 0xffff) !== member + 1 && before >>> 16 !== member + 1) continue;
      if (Atomics.load(this.hashes, at / 2) === FREE) continue;
      const left = membersOf(before).filter((other) => other !== member);
      if (left.length === 0) this.give(at);
      else this.change(at, before, wordOf(left));
    }
  }

  next(name: string): number {
    return Atomics.add(this.cells, this.counter(name), 1) >>> 0;
  }

  upcoming(name: string): number {
    return Atomics.load(this.cells, this.counter(name)) >>> 0;
  }

  countLength(name: string, tokens: number): void {
    const bucket = Math.floor(Math.log2(Math.max(1, tokens)) * 4);
    Atomics.add(this.cells, this.row(name) + 1 + Math.min(bucket, LENGTHS - 1), 1);
  }

  lengths(name: string): Uint32Array {
    const at = this.row(name) + 1;
    return Uint32Array.from({ length: LENGTHS }, (_, i) => Atomics.load(this.cells, at + i));
  }

  private counter(name: string): number {
    return COUNTER + Number(this.hash(name) & BigInt(COUNTERS - 1));
  }

  /** Row of a name; names that come when there is none left share one. */
  private row(name: string): number {
    const tag = Number(BigInt.asIntN(32, this.hash(name))) || 1;
    for (let i = 0; i < NAMES; i++) {
      const at = ROWS + (((tag >>> 0) + i) % NAMES) * LENGTH_ROW;
      const owner = Atomics.compareExchange(this.cells, at, 0, tag);
      if (owner === 0 || owner === tag) return at;
    }
    return ROWS + ((tag >>> 0) % NAMES) * LENGTH_ROW;
  }

  private hash(key: string): bigint {
    const hash = BigInt.asIntN(64, Bun.hash.wyhash(key, this.seed));
    return hash === FREE || hash === TAKEN ? 1n : hash;
  }

  private locate(hash: bigint): number {
    const bucket = bucketOf(hash);
    for (let slot = 0; slot < SLOTS; slot++)
      if (Atomics.load(this.hashes, (bucket + slot * SLOT) / 2) === hash) return bucket + slot * SLOT;
    return -1;
  }

  /** Takes a free slot for a key, or that which was not used for the longest time; -1 where others took them first. */
  private take(hash: bigint, now: number): number {
    const bucket = bucketOf(hash);
    let oldest = -1;
    let idle = -1;
    for (let at = bucket; at < bucket + SLOTS * SLOT; at += SLOT) {
      if (Atomics.compareExchange(this.hashes, at / 2, FREE, TAKEN) === FREE) return at;
      const its = seconds(now) - Atomics.load(this.cells, at + 3);
      if (Atomics.load(this.hashes, at / 2) !== TAKEN && its > idle) [oldest, idle] = [at, its];
    }
    return oldest >= 0 && this.empty(oldest) ? oldest : -1;
  }

  /** Ends a key; its slot is taken by the caller, unless another thread was quicker. */
  private empty(at: number): boolean {
    const hash = Atomics.load(this.hashes, at / 2);
    if (hash === FREE || hash === TAKEN) return false;
    if (Atomics.compareExchange(this.hashes, at / 2, hash, TAKEN) !== hash) return false;
    for (const member of membersOf(Atomics.exchange(this.cells, at + 2, 0)))
      Atomics.sub(this.cells, PER_MEMBER + member, 1);
    Atomics.sub(this.cells, KEYS, 1);
    return true;
  }

  private give(at: number): void {
    if (this.empty(at)) Atomics.store(this.hashes, at / 2, FREE);
  }

  /** Makes a member the first of a key's; the one that was first is the second then. */
  private putFirst(at: number, member: number): void {
    const before = Atomics.load(this.cells, at + 2);
    const others = membersOf(before).filter((other) => other !== member);
    this.change(at, before, wordOf([member, ...others.slice(0, 1)]));
  }

  private change(at: number, before: number, after: number): void {
    if (Atomics.compareExchange(this.cells, at + 2, before, after) !== before) return;
    for (const member of membersOf(after)) Atomics.add(this.cells, PER_MEMBER + member, 1);
    for (const member of membersOf(before)) Atomics.sub(this.cells, PER_MEMBER + member, 1);
  }

  private isIdle(at: number, now: number, maxIdleMs: number): boolean {
    return (seconds(now) - Atomics.load(this.cells, at + 3)) * 1000 > maxIdleMs;
  }

  /** Ends the keys of one more bucket that were not used for so long, so that they are not counted for ever. */
  private tidy(now: number, maxIdleMs: number): void {
    const bucket = TABLE + (Atomics.add(this.cells, HAND, 1) & (BUCKETS - 1)) * SLOTS * SLOT;
    for (let at = bucket; at < bucket + SLOTS * SLOT; at += SLOT)
      if (Atomics.load(this.hashes, at / 2) !== FREE && this.isIdle(at, now, maxIdleMs)) this.give(at);
  }
}

const seconds = (ms: number): number => Math.floor(ms / 1000);

const bucketOf = (hash: bigint): number => TABLE + Number((hash >> 32n) & BigInt(BUCKETS - 1)) * SLOTS * SLOT;

function membersOf(word: number): number[] {
  const [first, second] = [word & 0xffff, word >>> 16];
  if (first === 0) return [];
  return second === 0 ? [first - 1] : [first - 1, second - 1];
}

const wordOf = ([first, second]: readonly number[]): number =>
  (first! + 1) | (second === undefined ? 0 : (second + 1) << 16);
