/** The index as a serving thread uses it. */
import { Header, Member, type PrefixCells } from "./prefix-layout.ts";
import { ChainMatch } from "./prefix-match.ts";
import * as outbox from "./prefix-outbox.ts";
import { PrefixTable } from "./prefix-table.ts";
import type { ChainKeys, PrefixMatch, PrefixReader } from "./prefix-types.ts";

/** Blocks that are written before another may have the lock: some microseconds. */
const SLICE = 128;
/** How often the lock is looked at before what is to be written is put off. */
const LOOKS = 200;
const PUT_OFF_MS = 1;
/** Blocks that are put off at most; those of further promises are not written. */
const MOST_PUT_OFF = 65_536;
/** A chain whose last block was not used for so many seconds is marked as used. */
const TOUCH_S = 64;

/** A promise that could not be written at once: a copy of its part of the chain. */
interface PutOff {
  readonly keys: Int32Array;
  readonly member: number;
  readonly generation: number;
  readonly now: number;
  written: number;
}

export class ThreadPrefixes implements PrefixReader {
  private readonly table: PrefixTable;
  private readonly found: ChainMatch;
  private readonly owner: number;
  private readonly putOff: PutOff[] = [];
  private putOffBlocks = 0;
  private isWaiting = false;

  constructor(
    private readonly board: PrefixCells,
    private readonly thread: number,
  ) {
    this.table = new PrefixTable(board);
    this.found = new ChainMatch(board, this.table);
    this.owner = thread + 1;
  }

  match(chain: ChainKeys, now = Date.now()): PrefixMatch {
    return this.found.find(chain, now);
  }

  promise(chain: ChainKeys, from: number, member: number, now: number, isRemote = false): void {
    const { board } = this;
    if (!board.isLive(member)) return;
    if (!isRemote && from < chain.count && !board.sendsEvents(member))
      outbox.put(board, this.thread, chain, from, member);
    if (this.putOff.length > 0) this.writePutOff();
    const seconds = Math.floor(now / 1000);
    board.store(Header.clock, seconds);
    this.touch(chain, from, member, seconds);
    const generation = this.generation(member);
    const written = this.write(chain.keys, from, chain.count, member, generation, seconds);
    if (written < chain.count) this.later(chain.keys.slice(written * 2, chain.count * 2), member, generation, now);
  }

  /** Writes what is guessed of the blocks from one to another; gives the number of the first that was not, for want of the lock. */
  private write(
    keys: Int32Array,
    from: number,
    to: number,
    member: number,
    generation: number,
    seconds: number,
  ): number {
    const { board, table, owner } = this;
    for (let block = from; block < to; ) {
      table.warm(keys, block, Math.min(to, block + SLICE));
      if (!board.tryLock(owner, LOOKS)) return block;
      // it may have left, or begun anew, since
      if (!board.isLive(member) || this.generation(member) !== generation) {
        board.unlock(owner);
        return to;
      }
      let dropped = 0;
      for (const end = Math.min(to, block + SLICE); block < end; block++)
        if (!table.guess(keys[block * 2]!, keys[block * 2 + 1]!, member, seconds)) dropped++;
      board.unlock(owner);
      if (dropped > 0) board.add(Header.dropped, dropped);
    }
    return to;
  }

  /** Marks the beginning that was used, if that has not been done of late; not now, where another writes. */
  private touch(chain: ChainKeys, to: number, member: number, seconds: number): void {
    if (to === 0) return;
    const { board, table, owner } = this;
    const last = table.locate(chain.keys[to * 2 - 2]!, chain.keys[to * 2 - 1]!);
    if (last >= 0 && table.age(last, seconds) < TOUCH_S / 4) return;
    for (let block = 0; block < to; ) {
      if (!board.tryLock(owner, LOOKS)) return;
      for (const end = Math.min(to, block + SLICE); block < end; block++)
        table.touch(chain.keys[block * 2]!, chain.keys[block * 2 + 1]!, member, seconds);
      board.unlock(owner);
    }
  }

  private generation(member: number): number {
    return this.board.load(this.board.member(member) + Member.generation);
  }

  private later(keys: Int32Array, member: number, generation: number, now: number): void {
    const blocks = keys.length / 2;
    if (this.putOffBlocks + blocks > MOST_PUT_OFF) {
      this.board.add(Header.dropped, blocks);
      return;
    }
    this.putOff.push({ keys, member, generation, now, written: 0 });
    this.putOffBlocks += blocks;
    this.wait();
  }

  private wait(): void {
    if (this.isWaiting) return;
    this.isWaiting = true;
    const timer = setTimeout(() => {
      this.isWaiting = false;
      this.writePutOff();
    }, PUT_OFF_MS);
    timer.unref();
  }

  private writePutOff(): void {
    for (let first = this.putOff[0]; first !== undefined; first = this.putOff[0]) {
      const { keys, member, generation, now } = first;
      const count = keys.length / 2;
      first.written = this.write(keys, first.written, count, member, generation, Math.floor(now / 1000));
      if (first.written < count) {
        this.wait();
        return;
      }
      this.putOff.shift();
      this.putOffBlocks -= count;
    }
  }
}
