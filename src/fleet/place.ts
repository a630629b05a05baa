import { EngineError } from "../engines/engine.ts";
import type { FleetBoard } from "../threads/fleet-board.ts";
import type { Clock } from "./clock.ts";
import type { DispatchObserver } from "./dispatch/observer.ts";
import type { TimeLimits } from "./dispatch/policy.ts";
import type { Beating, Pulse } from "./dispatch/pulse.ts";
import type { Booking, ChoiceNote, Outcome, RouteTrace } from "./lease.ts";
import type { WorkerEntry } from "./snapshot.ts";

/** A circuit breaker changed. */
export type OnBreaker = (worker: WorkerEntry, became: "open" | "closed") => void;

export type Judgement = Exclude<Outcome, "neutral">;

/** What a thread's places have in common. */
export interface Surroundings {
  readonly board: FleetBoard;
  readonly thread: number;
  readonly clock: Clock;
  readonly pulse: Pulse;
  readonly observer: DispatchObserver;
}

interface Limited extends TimeLimits {
  onElapsed(error: EngineError): void;
}

/** A place at a worker, which is booked on the board already. */
export class Place<E> implements Booking, Beating {
  private isBooked = true;
  private hasBegun = false;
  /** The try has not been judged. */
  private isTrying: boolean;
  /** Something has come since the last beat. */
  private hasMoved = false;
  private isHeld = false;
  /** What was cached is told. */
  private isCounted = false;
  /** When something last came, or could not come. */
  private movedAt = 0;
  private limits: Limited | undefined;

  constructor(
    private readonly around: Surroundings,
    readonly worker: WorkerEntry,
    readonly engine: E,
    /** As booked. */
    private readonly tokens: number,
    readonly choice: ChoiceNote,
    private readonly trace?: RouteTrace,
  ) {
    this.isTrying = this.isProbe;
    if (trace === undefined) return;
    trace.worker = worker.id;
    trace.predictedTokens = choice.predictedTokens;
  }

  get isProbe(): boolean {
    return this.choice.branch === "probe";
  }

  cached(tokens: number, promptTokens = this.choice.promptTokens): void {
    if (this.isCounted) return;
    this.isCounted = true;
    if (this.trace !== undefined) this.trace.cachedTokens = tokens;
    this.around.observer.cached(this.worker, this.choice, tokens, promptTokens);
  }

  begun(): void {
    if (!this.isBooked || this.hasBegun) return;
    this.hasBegun = true;
    const { board, thread, clock, pulse } = this.around;
    const now = clock.now();
    this.movedAt = now;
    board.begun(this.worker.slot, thread, this.tokens, now);
    pulse.add(this);
    this.judge("ok", now); // the next try need not wait for the whole of a long answer
  }

  progress(): void {
    this.hasMoved = true;
  }

  hold(isHeld: boolean): void {
    this.isHeld = isHeld;
    this.hasMoved = true;
  }

  limit({ firstTokenMs, interTokenMs }: TimeLimits, onElapsed: (error: EngineError) => void): void {
    if (firstTokenMs === 0 && interTokenMs === 0) return;
    this.limits = { firstTokenMs, interTokenMs, onElapsed };
    this.movedAt = this.around.clock.now();
    this.around.pulse.add(this);
  }

  beat(now: number): void {
    if (this.hasMoved || this.isHeld) {
      this.hasMoved = false;
      this.movedAt = now;
      if (this.hasBegun) this.around.board.progress(this.worker.slot, this.around.thread, now);
    } else if (this.limits !== undefined) this.check(this.limits, now);
  }

  private check(limits: Limited, now: number): void {
    const limitMs = this.hasBegun ? limits.interTokenMs : limits.firstTokenMs;
    if (limitMs === 0 || now - this.movedAt < limitMs) return;
    this.limits = undefined;
    const what = this.hasBegun ? "the next token" : "the first token";
    limits.onElapsed(new EngineError("timeout", `${what} did not come within ${limitMs / 1000} s`));
  }

  done(outcome: Outcome): void {
    if (!this.isBooked) return;
    this.isBooked = false;
    const { board, thread, clock, pulse, observer } = this.around;
    pulse.delete(this);
    this.limits = undefined;
    const { slot } = this.worker;
    board.release(slot, thread, this.tokens, this.hasBegun);
    const now = clock.now();
    this.judge(outcome, now);
    if (outcome === "neutral") return;
    const isFailure = outcome === "failure";
    observer.judged(this.worker, isFailure);
    if (board.breaker.count(slot, thread, isFailure, this.isProbe, now)) observer.breaker(this.worker, "open");
  }

  private judge(outcome: Outcome, now: number): void {
    if (!this.isTrying) return;
    this.isTrying = false;
    const { board, thread, observer } = this.around;
    if (board.breaker.probed(this.worker.slot, thread, outcome, now)) observer.breaker(this.worker, "closed");
  }
}

/** For a worker's circuit breaker, when its place is given back. */
export function countLate({ board, thread, clock, observer }: Surroundings, worker: WorkerEntry, how: Judgement): void {
  const isFailure = how === "failure";
  observer.judged(worker, isFailure);
  if (board.breaker.count(worker.slot, thread, isFailure, false, clock.now())) observer.breaker(worker, "open");
}
