/** The index as control uses it. */
import { Entry, Header, MAX_MEMBERS, Member, type PrefixCells, SET_BYTES } from "./prefix-layout.ts";
import * as outbox from "./prefix-outbox.ts";
import { PrefixSweep } from "./prefix-sweep.ts";
import { bytesOf, PrefixTable } from "./prefix-table.ts";
import type { PrefixStats, PrefixWriter, RootKey } from "./prefix-types.ts";

/** How often the lock is looked at: some tens of microseconds, longer than a thread has it. */
const LOOKS = 5000;

export class ControlPrefixes implements PrefixWriter {
  private readonly table: PrefixTable;
  private readonly sweeper: PrefixSweep;
  private readonly owner: number;
  /** Members that are hidden already, and are still to be taken out of the sets; those that are kept are shown again then. */
  private readonly toForget = new Map<number, { isReleased: boolean }>();

  constructor(private readonly board: PrefixCells) {
    this.table = new PrefixTable(board);
    this.owner = board.threads + 1;
    this.sweeper = new PrefixSweep(board, this.table, this.owner);
  }

  get capacity(): number {
    return this.board.capacity;
  }

  claim(slot: number, rank: number): number {
    const { board } = this;
    this.forgetAll();
    for (let i = 1; i <= MAX_MEMBERS; i++) {
      // numbers that were given back last come last, so that nobody still means the one before
      const member = (board.load(Header.lastClaimed) + i) % MAX_MEMBERS;
      const at = board.member(member);
      if (board.load(at + Member.slot) !== 0) continue;
      board.store(at + Member.slot, slot + 1);
      board.store(at + Member.rank, rank);
      board.store(Header.lastClaimed, member);
      board.store(Header.membersEnd, Math.max(member + 1, board.load(Header.membersEnd)));
      board.setBit(board.exact, member, false);
      board.setBit(board.live, member, true);
      return member;
    }
    throw new RangeError(`more than ${MAX_MEMBERS} workers and ranks`);
  }

  release(member: number): void {
    this.forget(member, true);
  }

  clear(member: number): void {
    this.forget(member, false);
  }

  setExact(member: number, isExact: boolean): void {
    this.board.setBit(this.board.exact, member, isExact);
  }

  warm(keys: Int32Array, count: number): void {
    this.table.warm(keys, 0, count);
  }

  add(hi: number, lo: number, member: number): number {
    const { board, table, owner } = this;
    this.forgetAll();
    let at = -1;
    if (board.isLive(member) && board.tryLock(owner, LOOKS)) {
      at = table.tell(hi, lo, member, board.load(Header.clock));
      board.unlock(owner);
    }
    if (at < 0) board.add(Header.dropped, 1);
    return at < 0 ? -1 : table.positionOf(at);
  }

  drop(position: number, hi: number, lo: number, member: number): boolean {
    const { board, table, owner } = this;
    this.forgetAll();
    if (!this.isAt(position, hi, lo)) return false;
    if (!board.tryLock(owner, LOOKS)) return false;
    const isThere = this.isAt(position, hi, lo);
    if (isThere) table.untell(table.cellOf(position), member);
    board.unlock(owner);
    return isThere;
  }

  keyAt(position: number): RootKey | undefined {
    const { board } = this;
    const at = this.table.cellOf(position);
    const sets = board.load(at + Entry.sets);
    return sets === 0 ? undefined : [board.load(at), board.load(at + Entry.lo)];
  }

  sweep(entries: number, now: number): void {
    const seconds = Math.floor(now / 1000);
    this.board.store(Header.clock, seconds);
    this.forgetAll();
    this.sweeper.sweep(entries, seconds);
  }

  stats(): PrefixStats {
    const { board } = this;
    const blocks = board.load(Header.blocks);
    const sets = board.load(Header.setsMade) - board.load(Header.freeSets);
    return {
      blocks,
      bytes: bytesOf(blocks) + sets * SET_BYTES,
      sets,
      evicted: board.load(Header.evicted),
      dropped: board.load(Header.dropped),
    };
  }

  drain(take: (member: number, keys: Int32Array, count: number, from: number) => void): void {
    outbox.drain(this.board, take);
  }

  private isAt(position: number, hi: number, lo: number): boolean {
    const key = this.keyAt(position);
    return key !== undefined && key[0] === hi && key[1] === lo;
  }

  /** Hides it at once; it is taken out of the sets when the lock is free. */
  private forget(member: number, isReleased: boolean): void {
    const { board } = this;
    const at = board.member(member);
    if (board.load(at + Member.slot) === 0) return;
    board.setBit(board.live, member, false);
    board.add(at + Member.generation, 1);
    this.toForget.set(member, { isReleased: isReleased || this.toForget.get(member)?.isReleased === true });
    this.forgetAll();
  }

  private forgetAll(): void {
    const { board, owner, toForget } = this;
    if (toForget.size === 0 || !board.tryLock(owner, LOOKS)) return;
    for (const [member, { isReleased }] of toForget) {
      this.table.sets.remove(member);
      if (isReleased) board.store(board.member(member) + Member.slot, 0);
      else board.setBit(board.live, member, true);
    }
    toForget.clear();
    board.unlock(owner);
  }
}
