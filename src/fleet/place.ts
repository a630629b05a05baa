import type { FleetBoard } from "../threads/fleet-board.ts";
import type { Booking, Outcome } from "./lease.ts";
import type { WorkerEntry } from "./snapshot.ts";

/** Progress is noted at most this often for one request. */
const NOTED_MS = 100;

/** A circuit breaker changed. */
export type OnBreaker = (worker: WorkerEntry, became: "open" | "closed") => void;

/** What a thread's places have in common. */
export interface Surroundings {
  readonly board: FleetBoard;
  readonly thread: number;
  readonly onBreaker: OnBreaker;
}

/** A place at a worker, which is booked on the board already. */
export class Place<E> implements Booking {
  private isHeld = true;
  private hasBegun = false;
  /** The try has not been judged. */
  private isTrying: boolean;
  private notedAt = 0;

  constructor(
    private readonly around: Surroundings,
    readonly worker: WorkerEntry,
    readonly engine: E,
    private readonly tokens: number,
    readonly isProbe: boolean,
  ) {
    this.isTrying = isProbe;
  }

  begun(): void {
    if (!this.isHeld || this.hasBegun) return;
    this.hasBegun = true;
    const now = Date.now();
    this.notedAt = now;
    this.around.board.begun(this.worker.slot, this.around.thread, this.tokens, now);
    this.judge("ok", now); // the next try need not wait for the whole of a long answer
  }

  progress(): void {
    if (!this.isHeld) return;
    const now = Date.now();
    if (now - this.notedAt < NOTED_MS) return;
    this.notedAt = now;
    this.around.board.progress(this.worker.slot, this.around.thread, now);
  }

  done(outcome: Outcome): void {
    if (!this.isHeld) return;
    this.isHeld = false;
    const { board, thread, onBreaker } = this.around;
    const { slot } = this.worker;
    board.release(slot, thread, this.tokens, this.hasBegun);
    const now = Date.now();
    this.judge(outcome, now);
    if (outcome === "neutral") return;
    const isFailure = outcome === "failure";
    if (board.breaker.count(slot, thread, isFailure, this.isProbe, now)) onBreaker(this.worker, "open");
  }

  private judge(outcome: Outcome, now: number): void {
    if (!this.isTrying) return;
    this.isTrying = false;
    const { board, thread, onBreaker } = this.around;
    if (board.breaker.probed(this.worker.slot, thread, outcome, now)) onBreaker(this.worker, "closed");
  }
}
