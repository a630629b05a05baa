/**
 * The prefix index in shared memory: serving threads look up chains and write what they have sent where, control writes what workers
 * tell, and whoever writes has the one lock. Nobody waits for a lock for long: a thread that does not get it writes a little later.
 *
 * A thread loads the kernel when it first has something to do with it: a gateway without workers is small.
 */
import { newMemory, PrefixMemory } from "./prefix-memory.ts";
import { ThreadPrefixes } from "./prefix-reader.ts";
import type { PrefixKeys, PrefixReader, PrefixWriter } from "./prefix-types.ts";
import { ControlPrefixes } from "./prefix-writer.ts";

export class PrefixBoard {
  private opened: PrefixMemory | undefined;

  private constructor(readonly memory: WebAssembly.Memory) {}

  /**
   * `megabytes`: the most that blocks, sets of members and the table of engines' hashes take together; pages that were never written to take
   * no room. Throws RangeError.
   */
  static create(threads: number, megabytes: number): PrefixBoard {
    return new PrefixBoard(newMemory(threads, megabytes));
  }

  /** The board that another thread created. */
  static open(memory: WebAssembly.Memory): PrefixBoard {
    return new PrefixBoard(memory);
  }

  private get board(): PrefixMemory {
    this.opened ??= new PrefixMemory(this.memory);
    return this.opened;
  }

  /** Blocks that there is room for, and engines' hashes of blocks. */
  get capacity(): number {
    return this.board.kernel.capacity();
  }

  /** Bytes of the memory for each of the hashes. */
  get hashBytes(): number {
    return this.board.kernel.ROW_BYTES.value;
  }

  /** How keys are made in its memory. */
  get keys(): PrefixKeys {
    return this.board;
  }

  /** What one thread uses: it may be asked for once a thread. */
  reader(thread: number): PrefixReader {
    return this.readerOf(() => thread);
  }

  /** What control uses: there is one. */
  writer(): PrefixWriter {
    return new ControlPrefixes(() => this.board);
  }

  /** How control writes what other gateways have sent where; asked for once. */
  others(): Pick<PrefixReader, "promise"> {
    return this.readerOf(() => this.board.kernel.threads());
  }

  /** A thread died: the blocks that it was writing are left as they are, which is whole as far as it can be seen. */
  forgetThread(thread: number): void {
    const kernel = this.opened?.kernel; // where control has claimed nothing, nobody has written
    kernel?.forgetThread(thread + 1, kernel.threads() + 1);
  }

  private readerOf(thread: () => number): PrefixReader {
    let made: ThreadPrefixes | undefined;
    const reader = () => (made ??= new ThreadPrefixes(this.board, thread()));
    return {
      match: (chain, now) => reader().match(chain, now),
      promise: (chain, from, member, now, isRemote) => reader().promise(chain, from, member, now, isRemote),
    };
  }
}
