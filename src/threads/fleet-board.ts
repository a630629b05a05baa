/**
 * The fleet board: what all threads know of the workers, in shared memory. Control writes who there is, in which state, and what the
 * workers report; serving threads book the requests they have sent, and count how they ended.
 */
import {
  BoardCells,
  Column,
  epochOf,
  epochOfCell,
  lowMs,
  MAX_THREADS,
  MAX_WORKERS,
  nextEpoch,
  Row,
  since,
  slotOf,
  stateCell,
  stateOf,
  tenths,
} from "./board-layout.ts";
import { BreakerCells, type BreakerRules } from "./breaker-cells.ts";
import {
  type ReportedLoad,
  readFigures,
  readLoad,
  readThroughput,
  readUsage,
  readWaitingTokens,
  type WorkFigures,
  writeLoad,
} from "./load-record.ts";

export { MAX_THREADS } from "./board-layout.ts";
export type { BreakerRules, BreakerState } from "./breaker-cells.ts";
export type { ReportedLoad } from "./load-record.ts";

/** Only `ready` workers get requests. */
export const WorkerState = { absent: 0, starting: 1, ready: 2, unhealthy: 3, draining: 4, failed: 5 } as const;
export type WorkerStateCode = (typeof WorkerState)[keyof typeof WorkerState];

/** Times (`now`) are milliseconds since 1970, and are kept to a tenth of a second. What is done with the slot of a worker that has left, does nothing. */
export class FleetBoard {
  readonly breaker: BreakerCells;

  private constructor(private readonly board: BoardCells) {
    this.breaker = new BreakerCells(board);
  }

  /** Without `breaker` rules no circuit breaker ever opens. */
  static create(threads: number, breaker?: BreakerRules): FleetBoard {
    if (threads < 1 || threads > MAX_THREADS) throw new RangeError(`threads must be 1 to ${MAX_THREADS}`);
    const board = BoardCells.create(threads);
    if (breaker !== undefined) BreakerCells.setRules(board, breaker);
    return new FleetBoard(board);
  }

  /** The board that another thread created. */
  static open(memory: SharedArrayBuffer): FleetBoard {
    return new FleetBoard(new BoardCells(memory));
  }

  get memory(): SharedArrayBuffer {
    return this.board.memory;
  }

  /** Takes a free row for a worker. Its slot is never given again. Throws RangeError when there are too many workers. */
  claim(): number {
    for (let row = 0; row < MAX_WORKERS; row++) {
      const at = this.board.row(row) + Row.state;
      const cell = this.board.load(at);
      const epoch = epochOfCell(cell);
      if (stateOf(cell) !== WorkerState.absent) continue;
      if (!this.board.swap(at, cell, stateCell(epoch, WorkerState.starting))) continue;
      const slot = slotOf(row, epoch);
      this.board.store(this.board.row(row) + Row.avoided, avoidedCell(epoch, 0));
      this.board.store(this.board.row(row) + Row.usedAt, 0);
      this.breaker.reset(slot);
      return slot;
    }
    throw new RangeError(`more than ${MAX_WORKERS} workers`);
  }

  /** Gives a row back. What is still booked at it is counted no more. */
  free(slot: number): void {
    const at = this.board.head(slot) + Row.state;
    const cell = this.board.load(at);
    const epoch = epochOf(slot);
    if (epochOfCell(cell) === epoch && stateOf(cell) !== WorkerState.absent)
      this.board.swap(at, cell, stateCell(nextEpoch(epoch), WorkerState.absent));
  }

  state(slot: number): WorkerStateCode {
    const cell = this.board.peek(this.board.head(slot) + Row.state);
    return epochOfCell(cell) === epochOf(slot) ? (stateOf(cell) as WorkerStateCode) : WorkerState.absent;
  }

  /** Only control does; `free` makes it absent. */
  setState(slot: number, state: Exclude<WorkerStateCode, 0>): void {
    const at = this.board.head(slot) + Row.state;
    const cell = this.board.load(at);
    const epoch = epochOf(slot);
    if (epochOfCell(cell) === epoch && stateOf(cell) !== WorkerState.absent)
      this.board.swap(at, cell, stateCell(epoch, state));
  }

  /** Makes every thread prefer other workers for a while: this one could not be reached. */
  avoid(slot: number, ms: number, now = Date.now()): void {
    const at = this.board.head(slot) + Row.avoided;
    const cell = this.board.load(at);
    const epoch = epochOf(slot);
    if (isAvoidedOf(cell, epoch)) this.board.swap(at, cell, avoidedCell(epoch, tenths(now + ms)));
  }

  isAvoided(slot: number, now = Date.now()): boolean {
    const cell = this.board.peek(this.board.head(slot) + Row.avoided);
    return (cell & AVOIDED_TIME) !== 0 && isAvoidedOf(cell, epochOf(slot)) && isAhead(cell & AVOIDED_TIME, now);
  }

  /**
   * Books one request of a thread at a worker, with the tokens of its prompt; `release` takes it back, exactly once. False: the worker
   * has left, and nothing is booked.
   */
  book(slot: number, thread: number, tokens = 0, now = Date.now()): boolean {
    if (!this.board.isCurrent(slot)) return false;
    const at = this.board.ownColumn(slot, thread);
    if (this.board.load(at + Column.running) === 0) this.board.store(at + Column.busySince, tenths(now));
    if (tokens > 0) this.board.add(at + Column.queuedTokens, tokens);
    this.board.add(at + Column.running, 1);
    this.board.store(this.board.head(slot) + Row.usedAt, lowMs(now));
    return true;
  }

  /** The first token of a booked request came: its prompt waits no more. */
  begun(slot: number, thread: number, tokens = 0, now = Date.now()): void {
    const at = this.mine(slot, thread);
    if (at < 0) return;
    if (tokens > 0) this.board.add(at + Column.queuedTokens, -tokens);
    this.board.add(at + Column.begun, 1);
    this.board.store(at + Column.progressAt, tenths(now));
  }

  /** Something came from the worker. */
  progress(slot: number, thread: number, now = Date.now()): void {
    const at = this.mine(slot, thread);
    if (at >= 0) this.board.store(at + Column.progressAt, tenths(now));
  }

  /** `tokens` as booked; `hasBegun`: whether `begun` was called. */
  release(slot: number, thread: number, tokens = 0, hasBegun = false): void {
    const at = this.mine(slot, thread);
    if (at < 0) return;
    if (hasBegun) this.board.add(at + Column.begun, -1);
    else if (tokens > 0) this.board.add(at + Column.queuedTokens, -tokens);
    this.board.add(at + Column.running, -1);
  }

  private mine(slot: number, thread: number): number {
    const at = this.board.column(slot, thread);
    return this.board.load(at + Column.epoch) === epochOf(slot) ? at : -1;
  }

  /** Requests running at a worker, of all threads. */
  running(slot: number): number {
    return this.board.sum(slot, Column.running);
  }

  /** Of these, those whose first token has come. */
  begunCount(slot: number): number {
    return this.board.sum(slot, Column.begun);
  }

  /** Tokens of the prompts whose first token has not come. */
  queuedTokens(slot: number): number {
    return this.board.sum(slot, Column.queuedTokens);
  }

  /** When any thread last booked there, in milliseconds since 1970; 0 = never. */
  lastUsed(slot: number, now = Date.now()): number {
    const cell = this.board.peek(this.board.head(slot) + Row.usedAt);
    return cell === 0 ? 0 : now - ((lowMs(now) - cell) & (2 ** 31 - 1));
  }

  /** Booked requests at all workers. */
  bookings(): number {
    let sum = 0;
    for (let row = 0; row < MAX_WORKERS; row++) {
      const cell = this.board.load(this.board.row(row) + Row.state);
      if (stateOf(cell) !== WorkerState.absent) sum += this.running(slotOf(row, epochOfCell(cell)));
    }
    return sum;
  }

  /**
   * How long nothing has come from a worker that has something to do, in milliseconds: since anything last came of any request, or since
   * some thread has had requests there without a break, whichever is later. 0 if it has nothing to do.
   */
  silentMs(slot: number, now = Date.now()): number {
    const { board } = this;
    let silent = Number.POSITIVE_INFINITY;
    let busy = 0;
    for (let thread = 0; thread < board.threads; thread++) {
      const at = this.mine(slot, thread);
      if (at < 0) continue;
      const progressAt = board.load(at + Column.progressAt);
      if (progressAt !== 0) silent = Math.min(silent, since(progressAt, now));
      if (board.load(at + Column.running) > 0) busy = Math.max(busy, since(board.load(at + Column.busySince), now));
    }
    return Math.max(0, Math.min(silent, busy));
  }

  /** When anything last came from a worker, in milliseconds since 1970; 0 = never. New requests do not change it. */
  lastProgress(slot: number, now = Date.now()): number {
    const { board } = this;
    let ago = Number.POSITIVE_INFINITY;
    for (let thread = 0; thread < board.threads; thread++) {
      const at = this.mine(slot, thread);
      const progressAt = at < 0 ? 0 : board.load(at + Column.progressAt);
      if (progressAt !== 0) ago = Math.min(ago, since(progressAt, now));
    }
    return ago === Number.POSITIVE_INFINITY ? 0 : Math.floor(now / 100) * 100 - ago;
  }

  /** Only control does. */
  setLoad(slot: number, load: ReportedLoad, now = Date.now()): void {
    writeLoad(this.board, slot, load, now);
  }

  /** What the worker told last, and how long ago; undefined if it never did. */
  load(slot: number, now = Date.now()): { readonly load: ReportedLoad; readonly ageMs: number } | undefined {
    return readLoad(this.board, slot, now);
  }

  /** Tokens of waiting prompts that no cache holds, as the worker told within the last `maxAgeMs`; undefined if it did not. */
  waitingTokens(slot: number, now: number, maxAgeMs: number): number | undefined {
    return readWaitingTokens(this.board, slot, now, maxAgeMs);
  }

  /** Share of its KV cache in use, 0 to 1, as it told last; the same. */
  kvUsage(slot: number, now: number, maxAgeMs: number): number | undefined {
    return readUsage(this.board, slot, now, maxAgeMs);
  }

  /** `running`, `queuedTokens` or `waitingTokens` if those are more, and `kvUsage`, -1 where it is undefined, at one go. */
  figures(
    slot: number,
    now: number,
    maxAgeMs: { readonly queue: number; readonly usage: number },
    into: WorkFigures,
  ): void {
    readFigures(this.board, slot, now, maxAgeMs, into);
  }

  /** Tokens per second that it generates; the same. */
  throughput(slot: number, now: number, maxAgeMs: number): number | undefined {
    return readThroughput(this.board, slot, now, maxAgeMs);
  }

  /** Takes back everything that a dead thread had booked, and what it was trying. What it has counted stays. */
  forgetThread(thread: number): void {
    for (let row = 0; row < MAX_WORKERS; row++) {
      const at = this.board.column(row, thread); // of whatever epoch
      for (const cell of [Column.running, Column.begun, Column.queuedTokens, Column.busySince])
        if (this.board.load(at + cell) !== 0) this.board.store(at + cell, 0); // memory of rows that nobody uses stays untouched
    }
    this.breaker.forgetThread(thread);
  }
}

/** The low 22 bits hold tenths of a second, more than four days of them; the rest an epoch. */
const AVOIDED_TIME = 2 ** 22 - 1;
const avoidedCell = (epoch: number, time: number): number => (epoch << 22) | (time & AVOIDED_TIME);
const isAvoidedOf = (cell: number, epoch: number): boolean => cell >>> 22 === (epoch & 1023);
const isAhead = (time: number, now: number): boolean => (time - tenths(now)) << 10 > 0;
