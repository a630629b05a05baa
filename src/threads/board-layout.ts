/**
 * Where everything lies on the fleet board, and who a slot is. In 32-bit integers: a header, then one row a worker; a row is a head that
 * all threads read, and one column a thread. Only its thread writes a column, so that what a thread did can be taken back when it
 * dies, and sums need no lock.
 *
 * Rows are used again. A slot is a row together with an epoch, the number of workers that had the row before; a column belongs to an
 * epoch, too, and counts for no other one. So whatever a thread still does with the slot of a worker that left touches nobody.
 */
export const MAX_WORKERS = 1024;
export const MAX_THREADS = 64;

/** Cells of the header. */
export const Header = {
  threads: 0,
  /** Rules of the circuit breakers; `failures` 0 = there are none. */
  failures: 1,
  ratePpm: 2,
  successes: 3,
  timeoutTenths: 4,
  bucketMs: 5,
  SIZE: 16,
} as const;

/** Cells of a row's head. */
export const Row = {
  /** epoch << 4 | state */
  state: 0,
  /** epoch << 22 | tenths of a second */
  avoided: 1,
  /** See breaker-cells.ts. */
  breaker: 2,
  /** What the worker reports of itself: see load-record.ts. */
  load: 3,
  /** When a request was last booked there: the low 31 bits of milliseconds, never 0; 0 = not yet. */
  usedAt: 13,
  SIZE: 16,
} as const;

/** The window of a circuit breaker is cut into so many buckets. */
export const BUCKETS = 10;

/** Cells of a column: of one thread at one worker. */
export const Column = {
  epoch: 0,
  running: 1,
  /** Of these, requests whose first token has come. */
  begun: 2,
  queuedTokens: 3,
  /** Tenths of a second, as the next one; 0 = never. */
  progressAt: 4,
  /** Since when something has been running without a break. */
  busySince: 5,
  /** When this thread opened the worker's circuit breaker. */
  openedAt: 6,
  /** Generation of the breaker that the buckets count for. */
  generation: 7,
  /** [number, good, failed] each. */
  buckets: 8,
  /** A multiple of a cache line's 16 cells: threads do not wait for each other's writes. */
  SIZE: 48,
} as const;

const EPOCHS = 2 ** 21;
const STATES = 16;

export const slotOf = (row: number, epoch: number): number => epoch * MAX_WORKERS + row;
/** Slots are below 2 ** 31. */
const rowOf = (slot: number): number => slot & (MAX_WORKERS - 1);
/** Offset of a slot's row, whether or not the slot still has it; `rowSize` of the board. */
export const headOf = (slot: number, rowSize: number): number => Header.SIZE + rowOf(slot) * rowSize;
export const epochOf = (slot: number): number => slot >>> 10;

/** The content of `Row.state`. */
export const stateCell = (epoch: number, state: number): number => ((epoch % EPOCHS) * STATES) | state;
export const stateOf = (cell: number): number => cell & (STATES - 1);
export const epochOfCell = (cell: number): number => cell >>> 4;
export const nextEpoch = (epoch: number): number => (epoch + 1) % EPOCHS;

// A choice asks for one moment again and again, and the remainder of a large number is dear.
let lastMs = 0;
let lastTenths = 1;

/** Times as the board holds them: tenths of a second, the low 31 bits of them, never 0. */
export const tenths = (ms: number): number => {
  if (ms !== lastMs) {
    lastMs = ms;
    lastTenths = (Math.floor(ms / 100) % 2 ** 31) | 0 || 1;
  }
  return lastTenths;
};
/** Milliseconds from a time of the board to `now`; negative for one that is still to come. */
export const since = (time: number, now: number): number => (((tenths(now) - time) << 1) >> 1) * 100;

/** The same, in milliseconds. */
export const lowMs = (ms: number): number => ms % 2 ** 31 || 1;

/** The memory of a board, and the ways to its rows and columns. */
export class BoardCells {
  readonly cells: Int32Array;
  readonly threads: number;
  /** Cells of a row. */
  readonly rowSize: number;

  constructor(readonly memory: SharedArrayBuffer) {
    this.cells = new Int32Array(memory);
    this.threads = this.cells[Header.threads]!;
    this.rowSize = Row.SIZE + this.threads * Column.SIZE;
  }

  static create(threads: number): BoardCells {
    const size = Header.SIZE + MAX_WORKERS * (Row.SIZE + threads * Column.SIZE);
    const memory = new SharedArrayBuffer(size * 4);
    new Int32Array(memory)[Header.threads] = threads;
    return new BoardCells(memory);
  }

  /** Offset of a row by its number. */
  row(row: number): number {
    return Header.SIZE + row * this.rowSize;
  }

  head(slot: number): number {
    return headOf(slot, this.rowSize);
  }

  column(slot: number, thread: number): number {
    return this.head(slot) + Row.SIZE + thread * Column.SIZE;
  }

  load(at: number): number {
    return Atomics.load(this.cells, at);
  }

  /**
   * As `load`, for a number that may be a moment old and is in no order with others. An atomic load is a locked write here, ten times as
   * dear, and none begins before the one before has come from memory: a choice among many workers reads hundreds of cells.
   */
  peek(at: number): number {
    return this.cells[at]!;
  }

  store(at: number, value: number): void {
    Atomics.store(this.cells, at, value);
  }

  /** Whether `before` was there and has been replaced. */
  swap(at: number, before: number, after: number): boolean {
    return Atomics.compareExchange(this.cells, at, before, after) === before;
  }

  /** Adds to a cell that nobody else writes. */
  add(at: number, value: number): void {
    Atomics.store(this.cells, at, Atomics.load(this.cells, at) + value);
  }

  /** A slot whose worker has not left. */
  isCurrent(slot: number): boolean {
    return epochOfCell(this.load(this.head(slot) + Row.state)) === epochOf(slot);
  }

  /** Offset of a thread's own column for a slot that is current: emptied, if it was that of an earlier worker. */
  ownColumn(slot: number, thread: number): number {
    const at = this.column(slot, thread);
    if (this.load(at + Column.epoch) === epochOf(slot)) return at;
    for (let cell = 1; cell < Column.SIZE; cell++) this.store(at + cell, 0);
    this.store(at + Column.epoch, epochOf(slot)); // last: until then nobody counts it
    return at;
  }

  /** Sum of one cell of all threads at a slot. */
  sum(slot: number, cell: number): number {
    const epoch = epochOf(slot);
    const first = this.column(slot, 0);
    const end = first + this.threads * Column.SIZE;
    let sum = 0;
    for (let at = first; at < end; at += Column.SIZE) {
      const value = this.peek(at + cell);
      if (value !== 0 && this.peek(at + Column.epoch) === epoch) sum += value;
    }
    return sum;
  }
}
