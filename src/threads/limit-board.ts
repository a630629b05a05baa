/**
 * The limit board: how much all threads together may do, in shared memory. Requests that run at once, requests that wait for that, and
 * retries as a share of the requests.
 *
 * Layout, in 32-bit integers: a header, then one column a thread, which that thread alone writes: [requests that wait, 10 x (second,
 * requests, retries)]; then a byte for each permit, to run and to wait.
 */
import { Permits } from "./permits.ts";

export interface LimitRules {
  /** Requests that run at once; undefined: as many as come, and none ever waits. */
  readonly running: number | undefined;
  /** Requests that wait at most. */
  readonly waiting: number;
  /** Retries that there may be for one request, on average over ten seconds... */
  readonly retriesPerRequest: number;
  /** ...besides so many each second. */
  readonly retriesPerSec: number;
}

/** A budget for the retries of all threads. */
export interface RetryBudget {
  /** A request has come. */
  deposit(now?: number): void;
  /** One more retry is made, unless there have been too many. */
  retryToken(now?: number): boolean;
}

const RUNNING = 0;
const WAITING = 1;
const RETRIES_PPM = 2;
const RETRIES_PER_SEC = 3;
const THREADS = 4;
/** Counts what may have let somebody run: those that wait, sleep on it. */
const TURN = 5;
const HEADER = 16;

const WAITS = 0;
const BUCKETS = 1;
const SECONDS = 10;
/** A multiple of a cache line. */
const COLUMN = 32;

const NO_LIMIT = -1;

export class LimitBoard implements RetryBudget {
  private readonly cells: Int32Array;
  private readonly running: Permits;
  private readonly waiting: Permits;
  private readonly column: number;
  private readonly retriesPerRequest: number;
  private readonly retriesPerSec: number;
  private readonly threads: number;
  /** Whether there is a limit to the requests that run at once. */
  readonly isLimited: boolean;

  private constructor(
    readonly memory: SharedArrayBuffer,
    thread: number,
  ) {
    const cells = new Int32Array(memory, 0, HEADER);
    const [running, waiting, threads] = [cells[RUNNING]!, cells[WAITING]!, cells[THREADS]!];
    this.isLimited = running !== NO_LIMIT;
    this.threads = threads;
    this.retriesPerRequest = cells[RETRIES_PPM]! / 1e6;
    this.retriesPerSec = cells[RETRIES_PER_SEC]!;
    const size = HEADER + threads * COLUMN;
    this.cells = new Int32Array(memory, 0, size);
    this.column = HEADER + thread * COLUMN;
    const first = this.isLimited ? running : 0;
    this.running = new Permits(new Uint8Array(memory, size * 4, first), thread);
    this.waiting = new Permits(new Uint8Array(memory, size * 4 + first, this.isLimited ? waiting : 0), thread);
  }

  static create(threads: number, rules: LimitRules): LimitBoard {
    const { running = NO_LIMIT, waiting } = rules;
    const permits = running === NO_LIMIT ? 0 : running + waiting;
    const memory = new SharedArrayBuffer((HEADER + threads * COLUMN) * 4 + permits);
    const header = new Int32Array(memory, 0, HEADER);
    header[RUNNING] = running;
    header[WAITING] = waiting;
    header[RETRIES_PPM] = Math.round(rules.retriesPerRequest * 1e6);
    header[RETRIES_PER_SEC] = rules.retriesPerSec;
    header[THREADS] = threads;
    return new LimitBoard(memory, 0);
  }

  /** The board that another thread created, as `thread` uses it. */
  static open(memory: SharedArrayBuffer, thread: number): LimitBoard {
    return new LimitBoard(memory, thread);
  }

  /** A permit to run; -1 if as many run as may. */
  tryRun(): number {
    return this.running.take();
  }

  /** A request that ran is over. */
  ran(permit: number): void {
    this.running.give(permit);
    if (this.someoneWaits()) this.wakeOne();
  }

  /** A permit to wait; -1 if as many wait as may. */
  tryWait(): number {
    const permit = this.waiting.take();
    if (permit >= 0) this.add(this.column + WAITS, 1);
    return permit;
  }

  /** A request waits no more. */
  waited(permit: number): void {
    this.add(this.column + WAITS, -1);
    this.waiting.give(permit);
  }

  /** Whether requests of any thread wait: then a new one has to wait as well. */
  someoneWaits(): boolean {
    for (let thread = 0; thread < this.threads; thread++)
      if (Atomics.load(this.cells, HEADER + thread * COLUMN + WAITS) > 0) return true;
    return false;
  }

  /** A number that changes when somebody may run: see `changed`. */
  turn(): number {
    return Atomics.load(this.cells, TURN);
  }

  /** Resolves when `turn` is no longer `seen`, or after `ms`. Threads that wait are woken in their order, one at a time. */
  async changed(seen: number, ms: number): Promise<void> {
    const result = Atomics.waitAsync(this.cells, TURN, seen, ms);
    if (result.async) await result.value;
  }

  /** Lets one thread look whether it may run something. */
  wakeOne(): void {
    Atomics.add(this.cells, TURN, 1);
    Atomics.notify(this.cells, TURN, 1);
  }

  /** Requests that run. Zero where there is no limit. */
  runningCount(): number {
    return this.running.taken();
  }

  waitingCount(): number {
    return this.waiting.taken();
  }

  deposit(now = Date.now()): void {
    this.add(this.bucket(now) + 1, 1);
  }

  retryToken(now = Date.now()): boolean {
    const newest = second(now);
    let requests = 0;
    let retries = 0;
    for (let thread = 0; thread < this.threads; thread++) {
      for (let i = 0; i < SECONDS; i++) {
        const at = HEADER + thread * COLUMN + BUCKETS + i * 3;
        if (newest - Atomics.load(this.cells, at) >= SECONDS) continue;
        requests += Atomics.load(this.cells, at + 1);
        retries += Atomics.load(this.cells, at + 2);
      }
    }
    if (retries + 1 > requests * this.retriesPerRequest + this.retriesPerSec * SECONDS) return false;
    this.add(this.bucket(now) + 2, 1);
    return true;
  }

  /** This thread's counts of the second. */
  private bucket(now: number): number {
    const number = second(now);
    const at = this.column + BUCKETS + (number % SECONDS) * 3;
    if (Atomics.load(this.cells, at) !== number) {
      Atomics.store(this.cells, at + 1, 0);
      Atomics.store(this.cells, at + 2, 0);
      Atomics.store(this.cells, at, number);
    }
    return at;
  }

  /** Adds to a cell that nobody else writes. */
  private add(at: number, value: number): void {
    Atomics.store(this.cells, at, Atomics.load(this.cells, at) + value);
  }

  /** A thread died: its requests neither run nor wait. */
  forgetThread(thread: number): void {
    Atomics.store(this.cells, HEADER + thread * COLUMN + WAITS, 0);
    this.waiting.forgetThread(thread);
    this.running.forgetThread(thread);
    Atomics.add(this.cells, TURN, 1);
    Atomics.notify(this.cells, TURN);
  }
}

const second = (ms: number): number => Math.floor(ms / 1000) % 2 ** 31;
