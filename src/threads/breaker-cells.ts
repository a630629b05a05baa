/**
 * The workers' circuit breakers on the fleet board. Failures are counted in a sliding window; when there are enough of them, and their
 * share is large enough, the worker gets no requests for a while, and then one at a time in the whole process, until enough of these
 * went well in a row.
 *
 * The counts lie in the threads' columns; the breaker itself is one cell that changes by compare-and-swap:
 * epoch:8 | generation:6 | successes:10 | thread:6 | state:2. `thread` is who opened it, or whose request tries the worker. A new
 * generation begins when it closes: older counts are void then.
 */
import { type BoardCells, BUCKETS, Column, epochOf, Header, MAX_WORKERS, Row, since, tenths } from "./board-layout.ts";

export interface BreakerRules {
  /** Failures in the window that open it... */
  readonly failures: number;
  /** ...if they are at least this share of all ends, 0 to 1. */
  readonly rate: number;
  /** Good tries in a row that close it. */
  readonly successes: number;
  /** From its opening to the first try. */
  readonly timeoutMs: number;
  readonly windowMs: number;
}

export type BreakerState = "closed" | "open" | "half-open";

const CLOSED = 0;
const OPEN = 1;
/** Half-open, and nobody tries the worker at the moment. */
const IDLE = 2;
const PROBING = 3;

const stateOf = (cell: number): number => cell & 3;
const threadOf = (cell: number): number => (cell >>> 2) & 63;
const successesOf = (cell: number): number => (cell >>> 8) & 1023;
const generationOf = (cell: number): number => (cell >>> 18) & 63;
const isOf = (cell: number, slot: number): boolean => cell >>> 24 === (epochOf(slot) & 255);
const cellOf = (slot: number, generation: number, successes: number, thread: number, state: number): number =>
  ((epochOf(slot) & 255) << 24) | ((generation & 63) << 18) | (successes << 8) | (thread << 2) | state;

export class BreakerCells {
  private readonly failures: number;
  private readonly rate: number;
  private readonly successes: number;
  private readonly timeoutMs: number;
  private readonly bucketMs: number;

  constructor(private readonly board: BoardCells) {
    this.failures = board.load(Header.failures);
    this.rate = board.load(Header.ratePpm) / 1e6;
    this.successes = board.load(Header.successes);
    this.timeoutMs = board.load(Header.timeoutTenths) * 100;
    this.bucketMs = board.load(Header.bucketMs);
  }

  /** Without rules there are no breakers. */
  static setRules(board: BoardCells, rules: BreakerRules): void {
    board.store(Header.failures, rules.failures);
    board.store(Header.ratePpm, Math.round(rules.rate * 1e6));
    board.store(Header.successes, rules.successes);
    board.store(Header.timeoutTenths, Math.ceil(rules.timeoutMs / 100));
    board.store(Header.bucketMs, Math.max(1, Math.ceil(rules.windowMs / BUCKETS)));
  }

  private at(slot: number): number {
    return this.board.head(slot) + Row.breaker;
  }

  isClosed(slot: number): boolean {
    const cell = this.board.peek(this.at(slot));
    return stateOf(cell) === CLOSED || !isOf(cell, slot);
  }

  state(slot: number): BreakerState {
    if (this.isClosed(slot)) return "closed";
    const cell = this.board.load(this.at(slot));
    return stateOf(cell) === OPEN ? "open" : "half-open";
  }

  /** Milliseconds until a request may go to the worker, or may try it; 0: now; Infinity: when the running try has ended. */
  waitMs(slot: number, now: number): number {
    const cell = this.board.load(this.at(slot));
    switch (isOf(cell, slot) ? stateOf(cell) : CLOSED) {
      case OPEN:
        return Math.max(0, this.timeoutMs - since(this.openedAt(slot, cell), now));
      case PROBING:
        return Number.POSITIVE_INFINITY;
      default:
        return 0;
    }
  }

  /** The one request that tries the worker is this thread's now. False if it is another one's, or if it is not the time. */
  tryProbe(slot: number, thread: number, now: number): boolean {
    const at = this.at(slot);
    const cell = this.board.load(at);
    const state = stateOf(cell);
    const isDue = state === IDLE || (state === OPEN && since(this.openedAt(slot, cell), now) >= this.timeoutMs);
    if (!isOf(cell, slot) || !isDue) return false;
    const probing = cellOf(slot, generationOf(cell), state === OPEN ? 0 : successesOf(cell), thread, PROBING);
    return this.board.swap(at, cell, probing);
  }

  private openedAt(slot: number, cell: number): number {
    return this.board.load(this.board.column(slot, threadOf(cell)) + Column.openedAt);
  }

  /** A try went well (its first token came, or all of it), badly, or says nothing. True if that closed the breaker. */
  probed(slot: number, thread: number, outcome: "ok" | "failure" | "neutral", now: number): boolean {
    const at = this.at(slot);
    const cell = this.board.load(at);
    if (!isOf(cell, slot) || stateOf(cell) !== PROBING || threadOf(cell) !== thread) return false;
    if (outcome === "failure") {
      this.open(slot, thread, cell, now);
      return false;
    }
    const successes = successesOf(cell) + (outcome === "ok" ? 1 : 0);
    if (successes < this.successes) {
      this.board.swap(at, cell, cellOf(slot, generationOf(cell), successes, 0, IDLE));
      return false;
    }
    return this.board.swap(at, cell, cellOf(slot, generationOf(cell) + 1, 0, 0, CLOSED));
  }

  /** Counts the end of a request. `tried`: it was once the one that tried the worker. True if that opened the breaker. */
  count(slot: number, thread: number, isFailure: boolean, tried: boolean, now: number): boolean {
    if (this.failures === 0) return false;
    const column = this.board.column(slot, thread);
    if (this.board.load(column + Column.epoch) !== epochOf(slot)) return false;
    this.add(slot, column, isFailure, now);
    if (!isFailure) return false;
    for (;;) {
      const cell = this.board.load(this.at(slot));
      if (!isOf(cell, slot)) return false;
      const state = stateOf(cell);
      const opens = state === CLOSED ? this.isTooMuch(slot, generationOf(cell), now) : tried && state === IDLE;
      if (!opens) return false;
      if (this.open(slot, thread, cell, now)) return true;
    }
  }

  private open(slot: number, thread: number, cell: number, now: number): boolean {
    this.board.store(this.board.column(slot, thread) + Column.openedAt, tenths(now)); // before anybody looks for it
    return this.board.swap(this.at(slot), cell, cellOf(slot, generationOf(cell), 0, thread, OPEN));
  }

  private bucketOf(now: number): number {
    return Math.floor(now / this.bucketMs) % 2 ** 31;
  }

  private add(slot: number, column: number, isFailure: boolean, now: number): void {
    const generation = generationOf(this.board.load(this.at(slot)));
    if (this.board.load(column + Column.generation) !== generation) {
      for (let i = 0; i < BUCKETS * 3; i++) this.board.store(column + Column.buckets + i, 0);
      this.board.store(column + Column.generation, generation);
    }
    const number = this.bucketOf(now);
    const bucket = column + Column.buckets + (number % BUCKETS) * 3;
    if (this.board.load(bucket) !== number) {
      this.board.store(bucket + 1, 0);
      this.board.store(bucket + 2, 0);
      this.board.store(bucket, number);
    }
    this.board.add(bucket + (isFailure ? 2 : 1), 1);
  }

  private isTooMuch(slot: number, generation: number, now: number): boolean {
    const { board } = this;
    const newest = this.bucketOf(now);
    let good = 0;
    let failed = 0;
    for (let thread = 0; thread < board.threads; thread++) {
      const column = board.column(slot, thread);
      const counts =
        board.load(column + Column.epoch) === epochOf(slot) && board.load(column + Column.generation) === generation;
      if (!counts) continue;
      for (let i = 0; i < BUCKETS; i++) {
        const bucket = column + Column.buckets + i * 3;
        if (newest - board.load(bucket) >= BUCKETS) continue;
        good += board.load(bucket + 1);
        failed += board.load(bucket + 2);
      }
    }
    return failed >= this.failures && failed >= this.rate * (good + failed);
  }

  /** A row has a new worker. */
  reset(slot: number): void {
    this.board.store(this.at(slot), cellOf(slot, 0, 0, 0, CLOSED));
  }

  /** A thread died: whoever asks next tries the workers that it was trying. */
  forgetThread(thread: number): void {
    for (let row = 0; row < MAX_WORKERS; row++) {
      const at = this.board.row(row) + Row.breaker;
      const cell = this.board.load(at);
      if (stateOf(cell) === PROBING && threadOf(cell) === thread) this.board.swap(at, cell, (cell & ~0xff) | IDLE);
    }
  }
}
