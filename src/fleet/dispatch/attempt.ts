/** One try at one worker. */
import {
  type ChoiceFinish,
  EngineError,
  type GenerateCall,
  type GenerateHandler,
  type GenerateRequest,
  type TokenChunk,
} from "../../engines/engine.ts";
import type { Lease } from "../lease.ts";
import type { FleetView } from "../view.ts";
import { outcomeOf } from "./outcome.ts";
import type { TimeLimits } from "./policy.ts";
import { avoidFailed, awayError, unlessRemoved } from "./retries.ts";

/** Whoever makes the tries of a request. */
export interface Tries {
  /** Something comes from a try, for the first time; everything that follows goes to `handler`. */
  begins(attempt: Attempt): void;
  /** `failure` is undefined after a good end, and "cancelled" after `cancel`. */
  ended(attempt: Attempt, failure: EngineError | undefined): void;
  readonly handler: GenerateHandler;
}

export class Attempt implements GenerateHandler, GenerateCall {
  private readonly handler: GenerateHandler;
  private call: GenerateCall | undefined;
  private hasBegun = false;
  /** Nothing of it is wanted any more. */
  private isMute = false;
  /** It gave all that was wanted. */
  private isEnough = false;
  /** Why it was cancelled here, if it was the worker's fault. */
  private blame: EngineError | undefined;
  /** The engine has ended a choice that was not over. */
  private hasBrokenOff = false;
  private forget: () => void = () => {};

  constructor(
    private readonly tries: Tries,
    private readonly fleet: FleetView,
    readonly lease: Lease,
    readonly isHedge: boolean,
  ) {
    this.handler = tries.handler;
  }

  /** Throws what the engine throws; the place is given back then. */
  start(request: GenerateRequest, limits: TimeLimits): void {
    const { lease } = this;
    this.forget = this.fleet.lost.watch(lease.worker.slot, () => this.fail(awayError()));
    lease.limit(limits, (error) => this.fail(error));
    try {
      this.call = lease.engine.generate(request, this);
    } catch (error) {
      this.forget();
      lease.done(outcomeOf(error));
      throw error;
    }
  }

  onChunk(chunk: TokenChunk): void {
    if (!this.hasBegun) this.begin();
    if (this.isMute) return;
    this.lease.progress();
    this.handler.onChunk(chunk);
  }

  onFinish(finish: ChoiceFinish): void {
    if (finish.reason === "error" || finish.reason === "abort") {
      if (!this.hasBegun) {
        this.fail(new EngineError("failed", "the engine ended the request before it was finished"));
        return;
      }
      if (!this.isMute) this.hasBrokenOff = true; // else that is the engine's word for being told to stop
    }
    if (!this.hasBegun) this.begin();
    if (!this.isMute) this.handler.onFinish(finish);
  }

  onIdle(): void {
    if (this.hasBegun && !this.isMute) this.handler.onIdle();
  }

  onEnd(error?: EngineError): void {
    this.forget();
    const failure = error?.kind === "cancelled" ? (this.blame ?? error) : unlessRemoved(this.fleet, this.lease, error);
    const isGood = this.isEnough || (failure === undefined && !this.hasBrokenOff);
    // whoever takes the answer may have cancelled it at a choice that has broken off
    this.lease.done(isGood ? "ok" : this.hasBrokenOff ? "failure" : outcomeOf(failure));
    this.fleet.observer.tried(this.lease.worker, isGood ? undefined : failure);
    avoidFailed(this.fleet, this.lease, failure);
    this.tries.ended(this, failure);
  }

  private begin(): void {
    if (this.isMute) return;
    this.hasBegun = true;
    this.forget();
    this.lease.begun();
    this.tries.begins(this);
  }

  /** The worker is given up: it does not move, or takes too long. */
  private fail(error: EngineError): void {
    this.blame = error;
    this.isMute = true;
    this.call?.cancel();
  }

  cancel(isEnough = false): void {
    this.isMute = true;
    this.isEnough = isEnough && this.hasBegun;
    this.forget();
    this.call?.cancel();
  }

  pause(): void {
    this.lease.hold(true);
    this.call?.pause();
  }

  resume(): void {
    this.lease.hold(false);
    this.call?.resume();
  }
}
