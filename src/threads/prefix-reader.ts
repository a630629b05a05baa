/** The index as a serving thread uses it. */
import type { PrefixKernel } from "./prefix-kernel/kernel.ts";
import { ChainMatch } from "./prefix-match.ts";
import type { PrefixMemory } from "./prefix-memory.ts";
import * as outbox from "./prefix-outbox.ts";
import type { ChainKeys, PrefixMatch, PrefixReader } from "./prefix-types.ts";

/** Groups that are written before another may have the lock: some microseconds. */
const SLICE_GROUPS = 16;
/** How often the lock is looked at before what is to be written is put off. */
const LOOKS = 400;
const PUT_OFF_MS = 1;
/** Blocks that are put off at most; those of further promises are not written. */
const MOST_PUT_OFF = 65_536;
/** A chain whose last block was not used for so many seconds is marked as used; a unit of use is four. */
const TOUCH_S = 64;

/** A promise that could not be written at once: a copy of its part of the chain, from a group's beginning on. */
interface PutOff {
  readonly keys: Int32Array;
  readonly count: number;
  readonly member: number;
  readonly generation: number;
  readonly seconds: number;
  written: number;
}

export class ThreadPrefixes implements PrefixReader {
  private readonly kernel: PrefixKernel;
  private readonly found: ChainMatch;
  private readonly owner: number;
  private readonly slice: number;
  private readonly putOff: PutOff[] = [];
  private putOffBlocks = 0;
  private isWaiting = false;
  private ring: Int32Array | undefined;

  constructor(
    private readonly board: PrefixMemory,
    private readonly thread: number,
  ) {
    this.kernel = board.kernel;
    this.found = new ChainMatch(board);
    this.owner = thread + 1;
    this.slice = SLICE_GROUPS * board.group;
  }

  match(chain: ChainKeys, now = Date.now()): PrefixMatch {
    return this.found.find(chain, now);
  }

  promise(chain: ChainKeys, from: number, member: number, now: number, isRemote = false): void {
    const { kernel } = this;
    if (kernel.isLive(member) === 0) return;
    if (this.putOff.length > 0) this.writePutOff();
    const seconds = Math.floor(now / 1000);
    kernel.setClock(seconds);
    const at = this.board.place(chain);
    this.touch(at, from, member, seconds);
    if (from >= chain.count) return;
    const first = from - (from % this.board.group);
    if (!isRemote && kernel.sendsEvents(member) === 0) this.tellOthers(chain, first, member);
    const generation = kernel.generation(member);
    const written = this.write(at, from, chain.count, member, generation, seconds);
    if (written < chain.count) this.later(chain, written, member, generation, seconds);
  }

  /** From a group's beginning on: elsewhere nobody finds a block by its key alone. */
  private tellOthers(chain: ChainKeys, first: number, member: number): void {
    this.ring ??= this.board.ring(this.thread);
    outbox.put(this.ring, chain, first, member);
  }

  /** Writes what is guessed of the blocks from one to another; gives the number of the first that was not, for want of the lock. */
  private write(at: number, from: number, to: number, member: number, generation: number, seconds: number): number {
    const { kernel, owner, slice } = this;
    for (let block = from; block < to; ) {
      if (kernel.lock(owner, LOOKS) === 0) return block;
      // it may have left, or begun anew, since
      if (kernel.isLive(member) === 0 || kernel.generation(member) !== generation) {
        kernel.unlock(owner);
        return to;
      }
      const end = Math.min(to, block - (block % slice) + slice);
      const dropped = kernel.guess(at, block, end, member, seconds);
      kernel.unlock(owner);
      if (dropped > 0) kernel.addDropped(dropped);
      block = end;
    }
    return to;
  }

  /** Marks the beginning that was used, if that has not been done of late; not now, where another writes. */
  private touch(at: number, to: number, member: number, seconds: number): void {
    const { kernel, owner, slice } = this;
    if (to === 0 || kernel.wasUsed(at, to, seconds, TOUCH_S / 4) !== 0) return;
    for (let block = 0; block < to; block += slice) {
      if (kernel.lock(owner, LOOKS) === 0) return;
      kernel.mark(at + block * 8, Math.min(slice, to - block), member, seconds);
      kernel.unlock(owner);
    }
  }

  private later(chain: ChainKeys, from: number, member: number, generation: number, seconds: number): void {
    const first = from - (from % this.board.group);
    const count = chain.count - first;
    if (this.putOffBlocks + count > MOST_PUT_OFF) {
      this.kernel.addDropped(chain.count - from);
      return;
    }
    const keys = chain.keys.slice(first * 2, chain.count * 2);
    this.putOff.push({ keys, count, member, generation, seconds, written: from - first });
    this.putOffBlocks += count;
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
      const { count, member, generation, seconds } = first;
      first.written = this.write(this.board.place(first), first.written, count, member, generation, seconds);
      if (first.written < count) {
        this.wait();
        return;
      }
      this.putOff.shift();
      this.putOffBlocks -= count;
    }
  }
}
