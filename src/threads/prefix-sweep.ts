/** Goes round the table little by little: throws out what is old where memory is short, and what nobody holds. */
import { BUCKET, Entry, Header, type PrefixCells } from "./prefix-layout.ts";
import type { PrefixTable } from "./prefix-table.ts";

/** Entries that are looked at before another may have the lock. */
const SLICE = 256;
const LOOKS = 5000;
/** Share of the places above which old blocks are thrown out... */
const FULL = 0.85;
/** ...and the part of the blocks that is old: so much is thrown out in a whole pass. */
const OLD_PART = 8;
const SAMPLES = 64;

export class PrefixSweep {
  private state = 1;

  constructor(
    private readonly board: PrefixCells,
    private readonly table: PrefixTable,
    private readonly owner: number,
  ) {}

  sweep(entries: number, seconds: number): void {
    const { board, owner } = this;
    const oldest = this.isFull() ? this.ageOfOld(seconds) : Number.POSITIVE_INFINITY;
    let hand = board.load(Header.hand);
    for (let left = Math.min(Math.ceil(entries), board.capacity); left > 0; ) {
      if (!board.tryLock(owner, LOOKS)) return;
      const end = Math.min(hand + Math.min(left, SLICE), board.capacity);
      left -= end - hand;
      for (; hand < end; hand++) this.look(this.table.cellOf(hand), seconds, oldest);
      if (hand === board.capacity) hand = 0;
      board.store(Header.hand, hand);
      board.unlock(owner);
    }
  }

  private look(at: number, seconds: number, oldest: number): void {
    const { board, table } = this;
    const sets = board.cells[at + Entry.sets]!;
    if (sets === 0) return;
    table.sets.makeRoom();
    if (table.age(at, seconds) >= oldest && this.isFull()) table.evict(at);
    else table.change(at, sets >>> 16, Math.max(0, table.believed(at, seconds)));
  }

  private isFull(): boolean {
    return this.board.load(Header.blocks) > FULL * this.board.capacity;
  }

  /** Age from which a block is among the oldest, by a sample of them. */
  private ageOfOld(seconds: number): number {
    const { board, table } = this;
    const ages: number[] = [];
    for (let i = 0; i < SAMPLES * BUCKET && ages.length < SAMPLES; i++) {
      this.state = (Math.imul(this.state, 1664525) + 1013904223) >>> 0;
      const at = table.cellOf(Math.floor((this.state / 2 ** 32) * board.capacity));
      if (board.load(at + Entry.sets) !== 0) ages.push(table.age(at, seconds));
    }
    ages.sort((a, b) => b - a);
    return Math.max(1, ages[Math.floor(ages.length / OLD_PART)] ?? 0);
  }
}
