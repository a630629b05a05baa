/** The table of blocks: how entries are found, made and thrown out. All but `locate` is called with the lock held. */
import {
  BUCKET_CELLS,
  ENTRY_BYTES,
  Entry,
  elapsed,
  GUESS_S,
  guessedTime,
  Header,
  PROMISE_S,
  type PrefixCells,
  stampOf,
  usedTime,
} from "./prefix-layout.ts";
import { PrefixSets } from "./prefix-sets.ts";

export class PrefixTable {
  readonly sets: PrefixSets;
  /** Nobody asks for it; but without it nothing would be read. */
  protected warmed = 0;

  constructor(readonly board: PrefixCells) {
    this.sets = new PrefixSets(board);
  }

  /** First cell of the entry with this key, -1 if there is none. */
  locate(hi: number, lo: number): number {
    const { cells, table, buckets } = this.board;
    let at = table + bucketOf(lo, buckets);
    for (let end = at + BUCKET_CELLS; at < end; at += Entry.SIZE)
      if (cells[at + Entry.lo] === lo && cells[at] === hi && cells[at + Entry.sets] !== 0) return at;
    at = table + bucketOf(hi, buckets);
    for (let end = at + BUCKET_CELLS; at < end; at += Entry.SIZE)
      if (cells[at + Entry.lo] === lo && cells[at] === hi && cells[at + Entry.sets] !== 0) return at;
    return -1;
  }

  /**
   * Reads the places of blocks from one to another, each `step` behind the last, so that they are on their way from memory all at once when
   * they are looked at one by one.
   */
  warm(keys: Int32Array, from: number, to: number, step = 1): void {
    const { cells, table, buckets } = this.board;
    let sum = 0;
    for (let block = from; block < to; block += step) {
      const one = table + bucketOf(keys[block * 2 + 1]!, buckets) + Entry.sets;
      const other = table + bucketOf(keys[block * 2]!, buckets) + Entry.sets;
      sum ^= cells[one]! ^ cells[one + BUCKET_CELLS / 2]! ^ cells[other]! ^ cells[other + BUCKET_CELLS / 2]!;
    }
    this.warmed = sum;
  }

  positionOf(at: number): number {
    return (at - this.board.table) / Entry.SIZE;
  }

  cellOf(position: number): number {
    return this.board.table + position * Entry.SIZE;
  }

  /** The member told that it holds a block; gives the cell of its entry, -1 where there is no room. */
  tell(hi: number, lo: number, member: number, seconds: number): number {
    this.sets.makeRoom();
    const at = this.locate(hi, lo);
    if (at < 0) {
      const set = this.sets.with(0, member);
      return set < 0 ? -1 : this.make(hi, lo, set << 16, seconds);
    }
    const before = this.board.cells[at + Entry.sets]!;
    const exact = this.sets.with(before >>> 16, member);
    const guessed = this.sets.without(before & 0xffff, member);
    if (exact < 0) return -1;
    this.change(at, exact, Math.max(0, guessed));
    this.use(at, seconds);
    return at;
  }

  /** It told that it holds it no more. */
  untell(at: number, member: number): void {
    this.sets.makeRoom();
    const before = this.board.cells[at + Entry.sets]!;
    const exact = this.sets.without(before >>> 16, member);
    this.change(at, Math.max(0, exact), before & 0xffff); // rather forget the others than believe this one
  }

  /** The member will hold a block, by what was sent to it. */
  guess(hi: number, lo: number, member: number, seconds: number): boolean {
    this.sets.makeRoom();
    const { cells } = this.board;
    const at = this.locate(hi, lo);
    if (at < 0) {
      const set = this.sets.with(0, member);
      return set >= 0 && this.make(hi, lo, set, seconds) >= 0;
    }
    const before = cells[at + Entry.sets]!;
    if (this.sets.has(before >>> 16, member)) {
      this.use(at, seconds);
      return true;
    }
    const guessed = this.sets.with(Math.max(0, this.believed(at, seconds)), member);
    if (guessed < 0) return false;
    this.change(at, before >>> 16, guessed);
    cells[at + Entry.stamp] = stampOf(usedTime(seconds), guessedTime(seconds)); // behind the set: it is not younger than what it holds
    return true;
  }

  /** A block was used by one that held it: it is not old, and what was guessed of it holds on. */
  touch(hi: number, lo: number, member: number, seconds: number): void {
    const at = this.locate(hi, lo);
    if (at < 0) return;
    const { cells } = this.board;
    const guessed = cells[at + Entry.sets]! & 0xffff;
    if (this.sets.has(guessed, member) && !this.board.sendsEvents(member) && this.believed(at, seconds) === guessed)
      cells[at + Entry.stamp] = stampOf(usedTime(seconds), guessedTime(seconds));
    else this.use(at, seconds);
  }

  /** The set of those of which an entry is still guessed; -1 where it cannot be kept. */
  believed(at: number, seconds: number): number {
    const { cells } = this.board;
    const guessed = cells[at + Entry.sets]! & 0xffff;
    const age = elapsed(cells[at + Entry.stamp]! & 0xffff, guessedTime(seconds));
    if (guessed === 0 || age > GUESS_S || this.sets.isEmpty(guessed)) return 0;
    return age > PROMISE_S ? this.sets.withoutSenders(guessed) : guessed;
  }

  /** Units of use since an entry was used. */
  age(at: number, seconds: number): number {
    return elapsed(this.board.cells[at + Entry.stamp]! >>> 16, usedTime(seconds));
  }

  /** Gives other sets to an entry; it ends where both are empty. */
  change(at: number, exact: number, guessed: number): void {
    const { board, sets } = this;
    const [one, other] = [sets.isEmpty(exact) ? 0 : exact, sets.isEmpty(guessed) ? 0 : guessed];
    const before = board.cells[at + Entry.sets]!;
    const after = (one << 16) | other;
    if (after === before) return;
    sets.use(one);
    sets.use(other);
    if (after === 0) board.cells[Header.blocks]!--;
    board.store(at + Entry.sets, after);
    sets.leave(before >>> 16);
    sets.leave(before & 0xffff);
  }

  /** Throws an entry out. */
  evict(at: number): void {
    const before = this.board.cells[at + Entry.sets]!;
    this.board.store(at + Entry.sets, 0);
    this.sets.leave(before >>> 16);
    this.sets.leave(before & 0xffff);
    this.board.cells[Header.blocks]!--;
    this.board.cells[Header.evicted]!++;
  }

  private use(at: number, seconds: number): void {
    const { cells } = this.board;
    cells[at + Entry.stamp] = stampOf(usedTime(seconds), cells[at + Entry.stamp]! & 0xffff);
  }

  private make(hi: number, lo: number, sets: number, seconds: number): number {
    const { board } = this;
    const { cells } = board;
    const at = this.place(hi, lo, seconds);
    this.sets.use(sets >>> 16);
    this.sets.use(sets & 0xffff);
    cells[Header.blocks]!++;
    cells[at] = hi;
    cells[at + Entry.lo] = lo;
    cells[at + Entry.stamp] = stampOf(usedTime(seconds), guessedTime(seconds));
    board.store(at + Entry.sets, sets); // last: until then nobody sees it
    return at;
  }

  /** A free place in the emptier of a key's two buckets; the oldest of both gives way where they are full. */
  private place(hi: number, lo: number, seconds: number): number {
    const { cells, table, buckets } = this.board;
    const one = table + bucketOf(lo, buckets);
    const other = table + bucketOf(hi, buckets);
    let [inOne, inOther, freeOne, freeOther] = [0, 0, -1, -1];
    for (let i = 0; i < BUCKET_CELLS; i += Entry.SIZE) {
      if (cells[one + i + Entry.sets] === 0) freeOne = one + i;
      else inOne++;
      if (cells[other + i + Entry.sets] === 0) freeOther = other + i;
      else inOther++;
    }
    if (freeOne >= 0 && inOne <= inOther) return freeOne;
    if (freeOther >= 0) return freeOther;
    let [oldest, age] = [one, -1];
    for (let i = 0; i < 2 * BUCKET_CELLS; i += Entry.SIZE) {
      const at = i < BUCKET_CELLS ? one + i : other + i - BUCKET_CELLS;
      const its = this.isDead(at, seconds) ? 0x10000 : this.age(at, seconds);
      if (its > age) [oldest, age] = [at, its];
    }
    this.evict(oldest);
    return oldest;
  }

  private isDead(at: number, seconds: number): boolean {
    return this.sets.isEmpty(this.board.cells[at + Entry.sets]! >>> 16) && this.believed(at, seconds) === 0;
  }
}

/** First cell of a bucket, from the start of the table. */
const bucketOf = (word: number, buckets: number): number =>
  Math.floor((word >>> 0) * 2 ** -32 * buckets) * BUCKET_CELLS;

/** Bytes of so many entries. */
export const bytesOf = (entries: number): number => entries * ENTRY_BYTES;
