/** Looks up a chain in the index. Takes no lock: what changes meanwhile is seen by the version of the sets, and looked up again. */
import {
  Entry,
  elapsed,
  GUESS_S,
  guessedTime,
  Header,
  MAX_MEMBERS,
  PROMISE_S,
  type PrefixCells,
} from "./prefix-layout.ts";
import { lowestBit } from "./prefix-sets.ts";
import type { PrefixTable } from "./prefix-table.ts";
import type { ChainKeys, PrefixMatch, PrefixSpan } from "./prefix-types.ts";

/** Stretches of equal holders that are told apart in a chain; what is behind them is not looked at. */
const MOST_SPANS = 64;
/** Places that are fetched from memory at once. */
const FETCHED = 8;
const TRIES = 3;

export class ChainMatch implements PrefixMatch {
  private readonly depths = new Int32Array(MAX_MEMBERS);
  private readonly exacts = new Uint8Array(MAX_MEMBERS);
  /** Members with a depth. */
  private readonly held = new Int32Array(MAX_MEMBERS);
  private heldCount = 0;
  // Stretches in order: the number behind the last block, and sets and stamp of that block.
  private readonly ends = new Int32Array(MOST_SPANS);
  private readonly sets = new Int32Array(MOST_SPANS);
  private readonly stamps = new Int32Array(MOST_SPANS);
  private count = 0;
  private chain: ChainKeys = { keys: new Int32Array(0), count: 0, blockSize: 1 };
  private now = 0;
  private version = 0;
  /** Stamp of the block that was looked up last. */
  private stamp = 0;
  private hasHoles = false;

  constructor(
    private readonly board: PrefixCells,
    private readonly table: PrefixTable,
  ) {}

  /** Fills this with what is held of a chain at a time in milliseconds. */
  find(chain: ChainKeys, now: number): this {
    this.chain = chain;
    this.now = now;
    this.hasHoles = this.board.load(Header.evicted) > 0;
    for (let i = 0; i < TRIES; i++) {
      this.forget();
      this.version = this.board.load(Header.version);
      this.findSpans();
      this.findDepths();
      if (this.board.load(Header.version) === this.version) return this;
    }
    this.count = 0;
    this.forget();
    return this;
  }

  depth(member: number): number {
    return this.depths[member]!;
  }

  isExact(member: number): boolean {
    return this.exacts[member] === 1;
  }

  spans(): readonly PrefixSpan[] {
    for (let i = 0; i < TRIES; i++) {
      const spans: PrefixSpan[] = [];
      for (let span = 0; span < this.count; span++)
        spans.push({ end: this.ends[span]!, exact: this.members(span, true), guessed: this.members(span, false) });
      if (this.board.load(Header.version) === this.version) return spans;
      this.find(this.chain, this.now);
    }
    return [];
  }

  private members(span: number, isExact: boolean): readonly number[] {
    const members: number[] = [];
    for (let word = 0; word < this.board.words(); word++) {
      const told = this.told(span, word);
      let bits = isExact ? told : this.guessed(span, word) & ~told;
      for (; bits !== 0; bits &= bits - 1) members.push(word * 32 + lowestBit(bits));
    }
    return members;
  }

  private forget(): void {
    for (let i = 0; i < this.heldCount; i++) {
      this.depths[this.held[i]!] = 0;
      this.exacts[this.held[i]!] = 0;
    }
    this.heldCount = 0;
  }

  /** Sets of a block; 0 where it is not known. */
  private look(block: number): number {
    const { keys } = this.chain;
    const hi = keys[block * 2]!;
    const lo = keys[block * 2 + 1]!;
    const at = this.table.locate(hi, lo);
    if (at < 0) return 0;
    const { board } = this;
    const sets = board.load(at + Entry.sets);
    this.stamp = board.load(at + Entry.stamp);
    // another block may have taken the place since; its key is written before its sets
    return board.load(at) === hi && board.load(at + Entry.lo) === lo ? sets : 0;
  }

  /** By halves: a stretch whose first and last blocks have the same holders has them all along. */
  private findSpans(): void {
    this.count = 0;
    const { count } = this.chain;
    if (count === 0) return;
    this.table.warm(this.chain.keys, 0, count, Math.max(1, count - 1)); // the first and the last
    const sets = this.look(0);
    if (sets === 0) return;
    const stamp = this.stamp;
    const last = count === 1 ? sets : this.look(count - 1);
    const lastStamp = this.stamp;
    this.split(0, sets, stamp, count - 1, last, count);
    if (last !== 0) this.end(count, last, lastStamp);
  }

  /** `stride`: from `left` on, so many blocks apart, the places of blocks have come from memory already. */
  private split(
    left: number,
    leftSets: number,
    leftStamp: number,
    right: number,
    rightSets: number,
    stride: number,
  ): void {
    if (leftSets === rightSets || this.count === MOST_SPANS) return;
    const width = right - left;
    if (width === 1) {
      if (leftSets !== 0) this.end(right, leftSets, leftStamp);
      return;
    }
    let step = stride;
    if (width <= stride) {
      // memory is slow, but gives many places at once: so all are fetched that the next halvings may look at
      step = Math.max(1, Math.ceil(width / FETCHED));
      this.table.warm(this.chain.keys, left + step, right, step);
    }
    let middle = left + Math.max(1, Math.floor(width / (2 * step))) * step;
    let sets = this.look(middle);
    // one block alone may have been thrown out of a full index
    if (sets === 0 && this.hasHoles && middle - left > 1) sets = this.look(--middle);
    const stamp = this.stamp;
    this.split(left, leftSets, leftStamp, middle, sets, step);
    this.split(middle, sets, stamp, right, rightSets, step);
  }

  private end(end: number, sets: number, stamp: number): void {
    if (this.count === MOST_SPANS) return;
    this.ends[this.count] = end;
    this.sets[this.count] = sets;
    this.stamps[this.count++] = stamp;
  }

  /** Bits of those who told that they hold a stretch. */
  private told(span: number, word: number): number {
    const { board } = this;
    return board.load(board.bitsOf(this.sets[span]! >>> 16) + word) & board.load(board.live + word);
  }

  private guessed(span: number, word: number): number {
    const { board } = this;
    const set = this.sets[span]! & 0xffff;
    if (set === 0) return 0;
    const age = elapsed(this.stamps[span]! & 0xffff, guessedTime(Math.floor(this.now / 1000)));
    if (age > GUESS_S) return 0;
    const bits = board.load(board.bitsOf(set) + word) & board.load(board.live + word);
    return age > PROMISE_S ? bits & ~board.load(board.exact + word) : bits;
  }

  /** A member holds what it holds of all stretches from the first on. */
  private findDepths(): void {
    if (this.count === 0) return;
    const words = this.board.words();
    for (let word = 0; word < words; word++) {
      let alive = -1;
      let told = 0;
      let end = 0;
      for (let span = 0; span < this.count && alive !== 0; span++) {
        const toldNow = this.told(span, word);
        const holds = toldNow | this.guessed(span, word);
        if (span > 0) this.hold(word, alive & ~holds, end, told);
        alive &= holds;
        told = toldNow;
        end = this.ends[span]!;
      }
      this.hold(word, alive, end, told);
    }
  }

  private hold(word: number, members: number, depth: number, told: number): void {
    for (let bits = members; bits !== 0; bits &= bits - 1) {
      const member = word * 32 + lowestBit(bits);
      this.depths[member] = depth;
      this.exacts[member] = (told >>> (member & 31)) & 1;
      this.held[this.heldCount++] = member;
    }
  }
}
