/**
 * The prefix index in shared memory: serving threads look up chains and write what they have sent where, control writes what workers
 * tell, and whoever writes has the one lock. Nobody waits for a lock for long: a thread that does not get it writes a little later.
 */
import { PrefixCells } from "./prefix-layout.ts";
import { ThreadPrefixes } from "./prefix-reader.ts";
import type { PrefixReader, PrefixWriter } from "./prefix-types.ts";
import { ControlPrefixes } from "./prefix-writer.ts";

export { ENGINE_ROW_BYTES, MAX_MEMBERS } from "./prefix-layout.ts";

export class PrefixBoard {
  private constructor(private readonly board: PrefixCells) {}

  /**
   * `megabytes`: the most that blocks, sets of members and the table of engines' hashes take together; pages that were never written to take
   * no room. Throws RangeError.
   */
  static create(threads: number, megabytes: number): PrefixBoard {
    return new PrefixBoard(PrefixCells.create(threads, megabytes));
  }

  /** The board that another thread created. */
  static open(memory: SharedArrayBuffer): PrefixBoard {
    return new PrefixBoard(new PrefixCells(memory));
  }

  get memory(): SharedArrayBuffer {
    return this.board.memory;
  }

  /** Blocks that there is room for, and rows that the table of engines' hashes may have, of `ENGINE_ROW_BYTES` each. */
  get capacity(): number {
    return this.board.capacity;
  }

  /** What one thread uses: it may be asked for once a thread. */
  reader(thread: number): PrefixReader {
    return new ThreadPrefixes(this.board, thread);
  }

  /** What control uses: there is one. */
  writer(): PrefixWriter {
    return new ControlPrefixes(this.board);
  }

  /** How control writes what other gateways have sent where; asked for once. */
  others(): Pick<PrefixReader, "promise"> {
    return new ThreadPrefixes(this.board, this.board.threads);
  }

  /** A thread died: what it was writing is left as it is, which is whole as far as it can be seen. */
  forgetThread(thread: number): void {
    this.board.unlock(thread + 1);
  }
}
