/** One try at one worker. */
import {
  type ChoiceFinish,
  EngineError,
  type GenerateCall,
  type GenerateHandler,
  type GenerateRequest,
  type TokenChunk,
} from "../../engines/engine.ts";
import { Feature } from "../../engines/features.ts";
import type { Lease, Outcome } from "../lease.ts";
import { homeOf } from "../snapshot.ts";
import type { FleetView } from "../view.ts";
import { outcomeOf } from "./outcome.ts";
import type { Doubted, PairWorkers } from "./pair-doubt.ts";
import type { TimeLimits } from "./policy.ts";
import { avoidFailed, awayError, unlessRemoved } from "./retries.ts";

/** One try to have a request done: at one worker, or at a pair of them. */
export interface Try extends GenerateCall {
  readonly isHedge: boolean;
  /** Another may run beside it while it has not begun. */
  readonly mayBeHedged: boolean;
  /** Slots of workers that no further try goes to. */
  readonly spent: readonly number[];
  /** A pair that has failed by one of its halves, whichever it was. */
  readonly doubted?: Doubted | undefined;
  /** Of a pair. */
  readonly pair?: PairWorkers;
  /** Throws what the engine throws; the places are given back then. */
  start(request: GenerateRequest, limits: TimeLimits): void;
  /** Gives back the places of a try that was not started. */
  done(outcome: Outcome): void;
}

/** Whoever makes the tries of a request. */
export interface Tries<T extends Try = Try> {
  /** Something comes from a try, for the first time; everything that follows goes to `handler`. */
  begins(attempt: T): void;
  /** `failure` is undefined after a good end, and "cancelled" after `cancel`. */
  ended(attempt: T, failure: EngineError | undefined): void;
  readonly handler: GenerateHandler;
}

/** How long an engine that is told to end a request may take to say how it ended. */
const LAST_WORD_MS = 1000;

export class Attempt implements Try, GenerateHandler {
  readonly mayBeHedged = true;
  private readonly handler: GenerateHandler;
  private call: GenerateCall | undefined;
  private hasBegun = false;
  /** Nothing of it is wanted any more. */
  private isMute = false;
  /** It gave all that was wanted. */
  private isEnough = false;
  /** A good end says nothing of the worker yet: it shows later what that was worth. */
  isJudgedLater = false;
  /** Why it was cancelled here, if it was the worker's fault. */
  private blame: EngineError | undefined;
  /** The engine has ended a choice that was not over. */
  private hasBrokenOff = false;
  private forget: () => void = () => {};
  private requestId = "";
  /** The engine was told to end it, and is listened to still. */
  private isCalledOff = false;
  private stopWaiting: () => void = () => {};

  constructor(
    private readonly tries: Tries<Attempt>,
    private readonly fleet: FleetView,
    readonly lease: Lease,
    readonly isHedge: boolean,
  ) {
    this.handler = tries.handler;
  }

  get spent(): readonly number[] {
    return [homeOf(this.lease.worker)];
  }

  start(request: GenerateRequest, limits: TimeLimits): void {
    const { lease } = this;
    this.requestId = request.requestId;
    this.forget = this.fleet.lost.watch(lease.worker.slot, () => this.fail(awayError()));
    lease.limit(limits, (error) => this.fail(error));
    try {
      this.call = lease.engine.generate(pinned(request, lease), this);
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
      if (this.isCalledOff) return; // the engine's word for having been told
      if (!this.hasBegun) {
        this.fail(new EngineError("failed", "the engine ended the request before it was finished"));
        return;
      }
      if (!this.isMute) this.hasBrokenOff = true; // else that is the engine's word for being told to stop
    }
    if (!this.hasBegun) this.begin();
    if (this.isMute) return;
    const { lease } = this;
    // to one that decodes, all came from a cache
    if (lease.worker.role !== "decode") lease.cached(finish.cachedTokens, finish.promptTokens);
    this.handler.onFinish(finish);
  }

  onIdle(): void {
    if (this.hasBegun && !this.isMute) this.handler.onIdle();
  }

  onEnd(error?: EngineError): void {
    this.forget();
    this.stopWaiting();
    const failure = error?.kind === "cancelled" ? (this.blame ?? error) : unlessRemoved(this.fleet, this.lease, error);
    const isGood = this.isEnough || (failure === undefined && !this.hasBrokenOff);
    // whoever takes the answer may have cancelled it at a choice that has broken off
    this.lease.done(
      isGood
        ? this.isCalledOff || this.isJudgedLater
          ? "neutral"
          : "ok"
        : this.hasBrokenOff
          ? "failure"
          : outcomeOf(failure),
    );
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

  done(outcome: Outcome): void {
    this.lease.done(outcome);
  }

  /** The worker is given up: it does not move, or takes too long. */
  fail(error: EngineError): void {
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

  /** Has the engine end it, and gives on what still comes: it may have been over just then. */
  callOff(): void {
    if (this.isCalledOff) return;
    this.isCalledOff = true;
    this.forget();
    this.lease.engine.abort([this.requestId]).catch(() => {});
    this.stopWaiting = this.fleet.clock.after(LAST_WORD_MS, () => this.cancel());
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

/** At the rank that was chosen, unless the client chose one, or the engine cannot be told. */
function pinned(request: GenerateRequest, { worker }: Lease): GenerateRequest {
  const { rank, facts } = worker;
  if (rank === undefined || request.dataParallelRank !== undefined) return request;
  if (facts !== undefined && (facts.features & Feature.dataParallelRank) === 0) return request;
  return { ...request, dataParallelRank: rank };
}
