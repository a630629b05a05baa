/** Standard input and output in large blocks, for commands that filter. Blocking: nothing else goes on in such a process. */
import { readSync, writeSync } from "node:fs";

const BLOCK = 1 << 20;
/** Longer lines are refused: the memory that a filter takes must not depend on its input without end. */
const MOST_LINE = 1 << 29;
const NEWLINE = 10;

/** Whoever reads the output has left. */
export class OutputClosedError extends Error {
  override readonly name = "OutputClosedError";
}

/** A line longer than 512 MB. */
export class LineTooLongError extends Error {
  override readonly name = "LineTooLongError";
}

const pause = new Int32Array(new SharedArrayBuffer(4));

/** A call on a file that may be in non-blocking mode, because somebody else made it so: tries until it goes through. */
function persistent(call: () => number): number {
  for (;;) {
    try {
      return call();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EAGAIN") Atomics.wait(pause, 0, 0, 1);
      else if (code === "EOF") return 0;
      else if (code !== "EINTR") throw error;
    }
  }
}

/**
 * Blocks of whole lines of a file, each as soon as it is there; the last line may lack its newline. A block is valid until the next
 * one is asked for. Throws LineTooLongError.
 */
export function* lineBlocks(fd: number): Generator<Buffer> {
  let buffer = Buffer.allocUnsafe(BLOCK);
  let used = 0;
  for (;;) {
    if (used === buffer.length) {
      if (used >= MOST_LINE) throw new LineTooLongError("the line is too long");
      const larger = Buffer.allocUnsafe(used * 2);
      buffer.copy(larger);
      buffer = larger;
    }
    const count = persistent(() => readSync(fd, buffer, used, buffer.length - used, null));
    if (count === 0) break;
    const end = buffer.subarray(used, used + count).lastIndexOf(NEWLINE) + 1;
    used += count;
    if (end === 0) continue;
    const lines = used - count + end;
    yield buffer.subarray(0, lines);
    buffer.copyWithin(0, lines, used);
    used -= lines;
  }
  if (used > 0) yield buffer.subarray(0, used);
}

/** All of a file. */
export function readAll(fd: number): Buffer {
  const blocks: Buffer[] = [];
  for (;;) {
    const block = Buffer.allocUnsafe(BLOCK);
    const count = persistent(() => readSync(fd, block, 0, BLOCK, null));
    if (count === 0) return Buffer.concat(blocks);
    blocks.push(block.subarray(0, count));
  }
}

/** Collects output and writes it in large blocks. */
export class BlockWriter {
  /** Fill from `used` on, as far as `room` was asked for. */
  buffer = Buffer.allocUnsafe(BLOCK * 2);
  used = 0;

  constructor(private readonly fd: number) {}

  /** Makes room for so many bytes. Throws OutputClosedError. */
  room(bytes: number): void {
    if (this.buffer.length - this.used >= bytes) return;
    this.flush();
    if (this.buffer.length < bytes) this.buffer = Buffer.allocUnsafe(bytes);
  }

  text(text: string): void {
    this.room(text.length * 3);
    this.used += this.buffer.write(text, this.used);
  }

  /** Writes what there is, however slowly it is read. Throws OutputClosedError. */
  flush(): void {
    for (let at = 0; at < this.used; ) {
      const from = at;
      try {
        at += persistent(() => writeSync(this.fd, this.buffer, from, this.used - from));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "EPIPE") throw new OutputClosedError("the output is closed");
        throw error;
      }
    }
    this.used = 0;
  }
}
