/**
 * What gateways tell each other of prompts that were sent to workers: blocks of the prefix index, by workers. A batch is a byte with the
 * version of its form, one with that of the keys, then records: name of the worker (u64), number of blocks (u32), and hi and lo of each block's key (i32, i32); all little-endian.
 */

/** Raised when the form changes: programs that differ in it, or in how keys are made, ignore each other. */
const FORM = 1;
const HEAD = 2;
const RECORD_HEAD = 12;
const BYTES_PER_BLOCK = 8;
/** A batch is sent on when it is this long. */
const FULL = 1 << 16;
/** Of one record; what a longer prompt has behind them is not told. */
export const MOST_BLOCKS = 1 << 16;

export class BatchWriter {
  private buffer = new DataView(new ArrayBuffer(2 * FULL));
  private used = HEAD;
  /** Blocks in it. */
  blocks = 0;

  /** `keysVersion`: of how keys are made, below 256. */
  constructor(private readonly keysVersion: number) {}

  get isFull(): boolean {
    return this.used >= FULL;
  }

  /** Adds blocks that follow each other in a chain. */
  add(worker: bigint, keys: Int32Array, blocks: number): void {
    const count = Math.min(blocks, MOST_BLOCKS);
    this.room(RECORD_HEAD + count * BYTES_PER_BLOCK);
    this.buffer.setBigUint64(this.used, worker, true);
    this.buffer.setUint32(this.used + 8, count, true);
    this.used += RECORD_HEAD;
    for (let i = 0; i < 2 * count; i++, this.used += 4) this.buffer.setInt32(this.used, keys[i]!, true);
    this.blocks += count;
  }

  /** The batch, and begins the next one. Valid until that is added to. */
  take(): Uint8Array {
    this.buffer.setUint8(0, FORM);
    this.buffer.setUint8(1, this.keysVersion);
    const batch = new Uint8Array(this.buffer.buffer, 0, this.used);
    this.used = HEAD;
    this.blocks = 0;
    return batch;
  }

  private room(bytes: number): void {
    if (this.used + bytes <= this.buffer.byteLength) return;
    const larger = new Uint8Array(Math.max(this.buffer.byteLength * 2, this.used + bytes));
    larger.set(new Uint8Array(this.buffer.buffer, 0, this.used));
    this.buffer = new DataView(larger.buffer);
  }
}

/**
 * Gives the records of a batch; `keys` is reused by the next one.
 * @returns false for what is no batch, or one of another version; the records in front of the fault were given
 */
export function readBatch(
  bytes: Uint8Array,
  keysVersion: number,
  take: (worker: bigint, keys: Int32Array, count: number) => void,
): boolean {
  if (bytes[0] !== FORM || bytes[1] !== keysVersion) return false;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let keys = new Int32Array(0);
  for (let at = HEAD; at < bytes.length; ) {
    if (at + RECORD_HEAD > bytes.length) return false;
    const worker = view.getBigUint64(at, true);
    const count = view.getUint32(at + 8, true);
    at += RECORD_HEAD;
    if (count > MOST_BLOCKS || at + count * BYTES_PER_BLOCK > bytes.length) return false;
    if (keys.length < 2 * count) keys = new Int32Array(2 * count);
    for (let i = 0; i < 2 * count; i++, at += 4) keys[i] = view.getInt32(at, true);
    take(worker, keys, count);
  }
  return true;
}
