/** The memory of the prefix index as one thread uses it: the kernel on it, and room in it for what is handed over. */
import { MAX_THREADS } from "./board-layout.ts";
import { instantiate, MAX_PAGES, PAGE, type PrefixKernel } from "./prefix-kernel/kernel.ts";
import { RING_BYTES, RING_CELLS } from "./prefix-outbox.ts";
import type { ChainKeys, KeyRoom } from "./prefix-types.ts";

/** Pages that threads may add for what they hand over: keys of long prompts. */
const MORE_PAGES = 4096;

/** Memory for an index, which is laid out by the first who uses it. Throws RangeError. */
export function newMemory(threads: number, megabytes: number): WebAssembly.Memory {
  if (threads < 1 || threads > MAX_THREADS) throw new RangeError(`threads must be 1 to ${MAX_THREADS}`);
  if (!(megabytes > 0) || megabytes > 4096) throw new RangeError("the prefix index takes up to 4096 MB");
  // pages that were never written to take no room; more than these no memory can have
  const rings = Math.ceil((threads * RING_BYTES) / PAGE);
  const bytes = Math.min(megabytes * 2 ** 20, (MAX_PAGES - MORE_PAGES - rings) * PAGE);
  const maximum = Math.min(MAX_PAGES, Math.ceil(bytes / PAGE) + rings + MORE_PAGES);
  const memory = new WebAssembly.Memory({ initial: 1, maximum, shared: true });
  new Float64Array(memory.buffer, 0, 2).set([threads, bytes]);
  return memory;
}

export class PrefixMemory {
  readonly kernel: PrefixKernel;
  /** Blocks of a group: a segment of the index begins with each of a chain's blocks 0, `group`, 2 `group`... */
  readonly group: number;
  /** Depths of members in the last match, and bits of those who told. */
  readonly depths: Int32Array;
  readonly exacts: Int32Array;
  private ids: Uint32Array;
  private idsAt: number;
  /** For keys that lie elsewhere. */
  private copies: KeyRoom;

  /** The memory as `newMemory` gave it, maybe in another thread. */
  constructor(readonly memory: WebAssembly.Memory) {
    const kernel = instantiate(memory);
    const [threads, bytes] = new Float64Array(memory.buffer, 0, 2) as unknown as [number, number];
    if (kernel.create(threads, bytes, RING_BYTES, Math.floor(Date.now() / 1000)) === 0 || kernel.open() === 0)
      throw new RangeError("there is no memory for the prefix index");
    this.kernel = kernel;
    this.group = kernel.GROUP.value;
    this.depths = this.words(this.at("depths"), kernel.MAX_MEMBERS.value);
    this.exacts = this.words(this.at("exacts"), kernel.MAX_MEMBERS.value / 32);
    this.idsAt = this.at("idsAt");
    this.ids = new Uint32Array(memory.buffer, this.idsAt, kernel.MOST_IDS.value);
    this.copies = this.room(this.at("keysAt"), kernel.MOST_KEYS.value);
  }

  /** Where something lies; addresses come as signed numbers. */
  at(what: "depths" | "exacts" | "idsAt" | "keysAt" | "hashesAt" | "knownAt"): number {
    return this.kernel[what].value >>> 0;
  }

  /** Where a thread tells what it has promised. */
  ring(thread: number): Int32Array {
    return this.words(this.kernel.ringAt(thread) >>> 0, RING_CELLS);
  }

  words(at: number, count: number): Int32Array {
    return new Int32Array(this.memory.buffer, at, count);
  }

  /** Room for keys of so many blocks that stays. */
  newRoom(blocks: number): KeyRoom {
    return this.room(this.grow(blocks * 8), blocks);
  }

  /** Where the keys of a chain lie in the memory: they are copied, unless they are there. */
  place({ keys, count, room }: Pick<ChainKeys, "keys" | "count" | "room">): number {
    if (room?.memory === this.memory) return room.at;
    if (count * 2 > this.copies.keys.length) this.copies = this.newRoom(2 ** Math.ceil(Math.log2(count)));
    this.copies.keys.set(count * 2 === keys.length ? keys : keys.subarray(0, count * 2));
    return this.copies.at;
  }

  /** The keys of `count` blocks of ids from `start` on, behind a parent; to a room from block number `to` on. */
  hash(
    ids: Uint32Array,
    start: number,
    count: number,
    size: number,
    hi: number,
    lo: number,
    room: KeyRoom,
    to = 0,
  ): void {
    const { kernel, idsAt } = this;
    const all = count * size;
    if (start === 0 && ids.length <= this.ids.length) {
      this.ids.set(ids);
      kernel.hash(idsAt, count, size, hi, lo, room.at + to * 8);
      return;
    }
    if (size > this.ids.length) this.makeRoom(size);
    const most = Math.floor(this.ids.length / size);
    for (let done = 0; done < count; ) {
      const blocks = Math.min(most, count - done);
      const from = start + done * size;
      this.ids.set(ids.subarray(from, Math.min(start + all, from + blocks * size)));
      const before = (to + done) * 2;
      const [parentHi, parentLo] = done === 0 ? [hi, lo] : [room.keys[before - 2]!, room.keys[before - 1]!];
      kernel.hash(this.idsAt, blocks, size, parentHi, parentLo, room.at + before * 4);
      done += blocks;
    }
  }

  private makeRoom(ids: number): void {
    this.idsAt = this.grow(ids * 4 + 16);
    this.ids = new Uint32Array(this.memory.buffer, this.idsAt, ids);
  }

  private room(at: number, blocks: number): KeyRoom {
    return { memory: this.memory, at, keys: this.words(at, blocks * 2) };
  }

  /** Whole pages of this thread's own. */
  private grow(bytes: number): number {
    return this.memory.grow(Math.ceil(bytes / PAGE)) * PAGE;
  }
}
