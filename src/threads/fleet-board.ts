/**
 * The fleet board: what all threads know of the workers, in shared memory. Control writes states; serving threads book the
 * requests they have sent. This module owns the layout; nobody else computes an offset.
 *
 * Layout, in 32-bit integers: a header [threads], then one row a worker: [state, avoided until, running of thread 0 ..
 * MAX_THREADS - 1]. Times are tenths of a second, the low 31 bits of them.
 * Each thread writes its own column only, so that a thread's bookings can be taken back when it dies.
 */
const MAX_WORKERS = 1024;
export const MAX_THREADS = 64;
const HEADER = 16;
const AVOIDED = 1;
const RUNNING = 2;
const ROW = RUNNING + MAX_THREADS;

export const WorkerState = { absent: 0, starting: 1, ready: 2, unhealthy: 3, draining: 4 } as const;
export type WorkerStateCode = (typeof WorkerState)[keyof typeof WorkerState];

export class FleetBoard {
  private readonly cells: Int32Array;
  private readonly threads: number;

  private constructor(readonly memory: SharedArrayBuffer) {
    this.cells = new Int32Array(memory);
    this.threads = this.cells[0]!;
  }

  static create(threads: number): FleetBoard {
    if (threads < 1 || threads > MAX_THREADS) throw new RangeError(`threads must be 1 to ${MAX_THREADS}`);
    const memory = new SharedArrayBuffer((HEADER + MAX_WORKERS * ROW) * 4);
    new Int32Array(memory)[0] = threads;
    return new FleetBoard(memory);
  }

  /** The board that another thread created. */
  static open(memory: SharedArrayBuffer): FleetBoard {
    return new FleetBoard(memory);
  }

  /** Takes a free row for a worker; its number is the worker's slot. */
  claim(): number {
    for (let slot = 0; slot < MAX_WORKERS; slot++) {
      const at = HEADER + slot * ROW;
      if (Atomics.compareExchange(this.cells, at, WorkerState.absent, WorkerState.starting) === WorkerState.absent)
        return slot;
    }
    throw new RangeError(`more than ${MAX_WORKERS} workers`);
  }

  state(slot: number): WorkerStateCode {
    return Atomics.load(this.cells, HEADER + slot * ROW) as WorkerStateCode;
  }

  setState(slot: number, state: WorkerStateCode): void {
    Atomics.store(this.cells, HEADER + slot * ROW, state);
  }

  /** Makes every thread prefer other workers for a while: this one could not be reached. */
  avoid(slot: number, ms: number, now = Date.now()): void {
    Atomics.store(this.cells, HEADER + slot * ROW + AVOIDED, tenths(now + ms));
  }

  isAvoided(slot: number, now = Date.now()): boolean {
    const until = Atomics.load(this.cells, HEADER + slot * ROW + AVOIDED);
    return until !== 0 && (until - tenths(now)) << 1 > 0;
  }

  /** Books one request of a thread at a worker; `release` takes it back, exactly once. */
  book(slot: number, thread: number): void {
    Atomics.add(this.cells, HEADER + slot * ROW + RUNNING + thread, 1);
  }

  release(slot: number, thread: number): void {
    Atomics.sub(this.cells, HEADER + slot * ROW + RUNNING + thread, 1);
  }

  /** Requests running at a worker, of all threads. */
  running(slot: number): number {
    const at = HEADER + slot * ROW + RUNNING;
    let sum = 0;
    for (let thread = 0; thread < this.threads; thread++) sum += Atomics.load(this.cells, at + thread);
    return sum;
  }

  /** Takes back everything that a dead thread had booked. */
  forgetThread(thread: number): void {
    for (let slot = 0; slot < MAX_WORKERS; slot++) Atomics.store(this.cells, HEADER + slot * ROW + RUNNING + thread, 0);
  }
}

function tenths(ms: number): number {
  return Math.floor(ms / 100) % 2 ** 31;
}
