/** The index as control uses it. */
import { TellingCache } from "./prefix-cache.ts";
import type { PrefixKernel } from "./prefix-kernel/kernel.ts";
import type { PrefixMemory } from "./prefix-memory.ts";
import * as outbox from "./prefix-outbox.ts";
import type { PrefixCache, PrefixStats, PrefixWriter } from "./prefix-types.ts";

/** How often the lock is looked at: some tens of microseconds, longer than a thread has it. */
const LOOKS = 5000;

/** Of an index in which nobody was ever claimed. */
const UNUSED: PrefixStats = { blocks: 0, places: 0, bytes: 0, sets: 0, evicted: 0, dropped: 0 };

/** What control needs of the memory, once it is open. */
interface Opened {
  readonly board: PrefixMemory;
  readonly kernel: PrefixKernel;
  readonly owner: number;
  readonly rings: readonly Int32Array[];
}

export class ControlPrefixes implements PrefixWriter {
  private opened: Opened | undefined;
  /** Members that are hidden already, and are still to be taken out of the sets; those that are kept are shown again then. */
  private readonly toForget = new Map<number, { isReleased: boolean }>();

  constructor(private readonly openBoard: () => PrefixMemory) {}

  get isUsed(): boolean {
    return this.opened !== undefined;
  }

  get isBusy(): boolean {
    const { kernel, owner } = this.open();
    if (kernel.lock(owner, LOOKS) === 0) return true;
    kernel.unlock(owner);
    return false;
  }

  get capacity(): number {
    return this.open().kernel.capacity();
  }

  claim(slot: number, rank: number): number {
    const { kernel } = this.open();
    this.forgetAll();
    const member = kernel.claim(slot, rank);
    if (member < 0) throw new RangeError(`more than ${kernel.MAX_MEMBERS.value} workers and ranks`);
    return member;
  }

  release(member: number): void {
    this.forget(member, true);
  }

  clear(member: number): void {
    this.forget(member, false);
  }

  setExact(member: number, isExact: boolean): void {
    this.open().kernel.setExact(member, isExact);
  }

  cache(member: number): PrefixCache {
    const { board, owner } = this.open();
    return new TellingCache(board, member, owner, this);
  }

  sweep(places: number, now: number): void {
    const { kernel, owner } = this.open();
    const seconds = Math.floor(now / 1000);
    kernel.setClock(seconds);
    this.forgetAll();
    kernel.sweep(Math.ceil(places), seconds, owner);
  }

  sweepHashes(rows: number): boolean {
    return this.open().kernel.sweepRows(rows) !== 0;
  }

  stats(): PrefixStats {
    if (this.opened === undefined) return UNUSED;
    const { kernel } = this.opened;
    return {
      blocks: kernel.blocks(),
      places: kernel.used(),
      bytes: kernel.bytesUsed(),
      sets: kernel.setsKept(),
      evicted: kernel.evicted(),
      dropped: kernel.dropped(),
    };
  }

  drain(take: (member: number, keys: Int32Array, count: number, from: number) => void): void {
    for (const ring of this.opened?.rings ?? []) outbox.drain(ring, take);
  }

  /** Takes those who were hidden out of the sets, if the lock is free. */
  forgetAll(): void {
    const { toForget } = this;
    const { kernel, owner } = this.open();
    if (toForget.size === 0 || kernel.lock(owner, LOOKS) === 0) return;
    for (const [member, { isReleased }] of toForget) kernel.forget(member, isReleased);
    toForget.clear();
    kernel.unlock(owner);
  }

  /** Hides it at once; it is taken out of the sets when the lock is free. */
  private forget(member: number, isReleased: boolean): void {
    if (this.open().kernel.hide(member) === 0) return;
    this.toForget.set(member, { isReleased: isReleased || this.toForget.get(member)?.isReleased === true });
    this.forgetAll();
  }

  private open(): Opened {
    if (this.opened === undefined) {
      const board = this.openBoard();
      const { kernel } = board;
      const threads = kernel.threads();
      const rings = Array.from({ length: threads }, (_, thread) => board.ring(thread));
      this.opened = { board, kernel, owner: threads + 1, rings };
    }
    return this.opened;
  }
}
