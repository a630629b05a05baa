import { type ChoiceFinish, EngineError, type GenerateRequest } from "../../engines/engine.ts";
import { toEngineError } from "../../engines/engine-error.ts";
import type { LeasePair, Outcome } from "../lease.ts";
import type { WorkerEntry } from "../snapshot.ts";
import type { FleetView } from "../view.ts";
import { Attempt, type Tries, type Try } from "./attempt.ts";
import { PairAnswer } from "./pair-answer.ts";
import { type Doubted, mayBeShared, type PairWorkers } from "./pair-doubt.ts";
import { PairMeter } from "./pair-meter.ts";
import type { TimeLimits } from "./policy.ts";

export const NO_LIMITS: TimeLimits = { firstTokenMs: 0, interTokenMs: 0 };

const BROKEN_OFF = "the engine ended the request before it was finished";

/**
 * One try at two workers, of which one prefills and the other decodes; only what comes from the latter is the answer. Each half is a try of
 * its own: either worker is judged by its own failures, and its place ends with what runs there. The first failure before the answer has
 * begun ends the other half, and a failure of the half that prefills means nothing later. There are no hedges: four workers for a request
 * would cost more than they help.
 */
export abstract class PairTry implements Try {
  readonly isHedge = false;
  readonly mayBeHedged = false;
  /** Workers that have failed: the other of the pair may do well in another one. */
  readonly spent: number[] = [];
  /** Both, where one of them has failed and it is not known which. */
  doubted: Doubted | undefined;
  protected readonly prefill: Attempt;
  protected readonly decode: Attempt;
  protected readonly answer: PairAnswer;
  /** Of a try in which both have a part. */
  protected meter: PairMeter | undefined;
  /** How they have to do with each other. */
  protected abstract readonly way: "meeting" | "transfer";
  /** All has come, or nothing more is wanted. */
  protected isOver = false;
  /** The answer has. */
  protected hasBegun = false;
  protected isPrefilling = false;
  /** The half that decodes was started. */
  protected isDecoding = false;
  private hasDecoded = false;
  protected hasPrefilled = false;
  private isPaused = false;

  constructor(
    private readonly tries: Tries,
    protected readonly fleet: FleetView,
    protected readonly places: LeasePair,
  ) {
    const answer = new PairAnswer(tries.handler, fleet.clock);
    this.answer = answer;
    const fromPrefill: Tries["handler"] = {
      onChunk: (chunk) => answer.prefillTold(chunk, false),
      onFinish: (finish) => this.onPrefilled(finish),
      onIdle() {},
      onEnd() {},
    };
    const prefillEnded = (_: Try, failure: EngineError | undefined) => this.onPrefillEnd(failure);
    const prefill = { begins() {}, ended: prefillEnded, handler: fromPrefill };
    const decodeEnded = (_: Try, failure: EngineError | undefined) => this.onDecodeEnd(failure);
    const decode = { begins: () => this.onBegin(), ended: decodeEnded, handler: answer };
    this.prefill = new Attempt(prefill, fleet, places.prefill, false);
    this.decode = new Attempt(decode, fleet, places.decode, false);
  }

  abstract start(request: GenerateRequest, limits: TimeLimits): void;

  /** The half that prefills has said all. */
  protected abstract prefilled(finish: ChoiceFinish): void;

  /** The client has left, or has all that it wants. */
  protected abstract abandon(isEnough: boolean): void;

  protected startPrefill(request: GenerateRequest, limits: TimeLimits): void {
    const { observer, clock } = this.fleet;
    this.meter = new PairMeter(observer, clock, this.places.prefill.worker);
    this.isPrefilling = true;
    this.run(this.prefill, request, limits);
  }

  protected startDecode(request: GenerateRequest, limits: TimeLimits): void {
    this.isDecoding = true;
    this.run(this.decode, request, limits);
    if (this.isPaused) this.decode.pause();
  }

  private run(half: Attempt, request: GenerateRequest, limits: TimeLimits): void {
    try {
      half.start(request, limits);
    } catch (error) {
      this.fail(toEngineError(error), half);
    }
  }

  /** The half that decodes will not be needed. */
  protected giveUpDecode(): void {
    if (!this.isDecoding) this.places.decode.done("neutral");
  }

  private onPrefilled(finish: ChoiceFinish): void {
    if (finish.reason === "abort" || finish.reason === "error") {
      if (!this.hasBegun) this.fail(new EngineError("failed", BROKEN_OFF), this.prefill);
      return;
    }
    this.hasPrefilled = true;
    this.meter?.prefilled();
    this.answer.prefillTold(finish, true);
    this.prefilled(finish);
  }

  private onPrefillEnd(failure: EngineError | undefined): void {
    this.isPrefilling = false;
    if (this.isOver) this.giveUpDecode();
    else if (failure === undefined || this.hasBegun) this.answer.complete();
    else this.fail(failure, this.prefill);
  }

  private onBegin(): void {
    this.hasBegun = true;
    this.meter?.begun();
    // there is nothing to decode before all is prefilled
    const { prefill } = this.places;
    prefill.begun();
    prefill.done(this.prefill.isJudgedLater ? "neutral" : "ok");
    if (this.prefill.isJudgedLater) this.fleet.judge(prefill.worker, "ok");
    if (this.isOver) this.decode.cancel();
    else this.tries.begins(this);
  }

  private onDecodeEnd(failure: EngineError | undefined): void {
    this.hasDecoded = true;
    if (this.hasBegun || failure === undefined) this.answer.end(() => this.end(failure));
    else this.fail(failure, this.decode);
  }

  /** `half`: who tells of it. */
  protected fail(failure: EngineError, half: Attempt): void {
    if (this.isOver) return;
    if (mayBeShared(failure) && this.mayBeTheOthers(half)) this.doubt(half.lease.worker);
    else this.spent.push(...half.spent);
    this.end(failure);
  }

  /** What one half fails by may be what the other has not done. */
  protected abstract mayBeTheOthers(half: Attempt): boolean;

  /** Both may have done it; `charged`: who has told of it. */
  protected doubt(charged: WorkerEntry | undefined): void {
    this.doubted = { ...this.pair, charged };
    this.fleet.observer.pairFailed(this.way);
  }

  get pair(): PairWorkers {
    const { prefill, decode } = this.places;
    return { prefill: prefill.worker, decode: decode.worker };
  }

  protected end(failure: EngineError | undefined): void {
    if (this.isOver) return;
    this.isOver = true;
    this.answer.close();
    this.stop(failure === undefined);
    this.tries.ended(this, failure);
  }

  /** Ends what runs of either half. */
  protected stop(isEnough: boolean): void {
    this.giveUpDecode();
    if (this.isPrefilling) this.prefill.cancel(isEnough || this.hasPrefilled);
    if (this.isDecoding && !this.hasDecoded) this.decode.cancel(isEnough);
  }

  cancel(isEnough = false): void {
    if (this.isOver) return;
    this.isOver = true;
    this.answer.close();
    this.abandon(isEnough);
    this.tries.ended(this, new EngineError("cancelled", "cancelled"));
  }

  pause(): void {
    this.isPaused = true;
    if (this.isDecoding) this.decode.pause();
  }

  resume(): void {
    this.isPaused = false;
    if (this.isDecoding) this.decode.resume();
  }

  done(outcome: Outcome): void {
    this.places.prefill.done(outcome);
    this.places.decode.done(outcome);
  }
}
