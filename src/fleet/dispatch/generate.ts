/** One generation on its way through a model's workers, until one of them begins to answer. */
import { EngineError, type GenerateCall, type GenerateHandler, type GenerateRequest } from "../../engines/engine.ts";
import { Feature, featuresOf } from "../../engines/features.ts";
import type { LeaseAsk, RouteOfRequest } from "../lease.ts";
import type { FleetView, Model } from "../view.ts";
import { Attempt, type Tries, type Try } from "./attempt.ts";
import { idOfTry, pauseBeforeNext } from "./attempts.ts";
import { pairTry } from "./pair.ts";
import { Doubts } from "./pair-doubt.ts";
import type { ModelLimits } from "./policy.ts";
import { leaseOther } from "./retries.ts";

/**
 * Sends a request to a worker, or to a pair of them where the model's work is split, and on to others as long as these fail, or take too long, before anything has come. Each
 * try has a request id of its own, and its booking ends with it. Throws NoWorkersError and UnsupportedError when there is no worker for
 * it at all.
 */
export function dispatchGeneration(
  fleet: FleetView,
  model: Model,
  request: GenerateRequest,
  handler: GenerateHandler,
  endpoint: string,
  route?: RouteOfRequest,
): GenerateCall {
  const dispatch = new Dispatch(fleet, model, request, handler, endpoint, route);
  dispatch.begin();
  return dispatch;
}

class Dispatch implements GenerateCall, Tries {
  private readonly ask: LeaseAsk & { readonly needs: number; readonly tried: Set<number> };
  private readonly limits: ModelLimits;
  private readonly doubts = new Doubts();
  /** Tries that run: one, two with a hedge, none in a pause. */
  private readonly running: Try[] = [];
  /** Tries that were made. */
  private made = 0;
  /** The try that the answer comes from. */
  private winner: Try | undefined;
  private isPaused = false;
  private isOver = false;
  /** Calls off the pause before the next try, or before the hedge. */
  private wait: (() => void) | undefined;

  constructor(
    private readonly fleet: FleetView,
    private readonly model: Model,
    private readonly request: GenerateRequest,
    readonly handler: GenerateHandler,
    private readonly endpoint: string,
    { hints, trace }: RouteOfRequest = {},
  ) {
    const { tokenIds, dataParallelRank: rank } = request;
    const route = { ...hints, tokenIds, tokens: tokenIds.length };
    this.ask = { needs: featuresOf(request), route, tried: new Set(), rank, trace };
    this.limits = fleet.policy.limitsOf(model.entry.id);
  }

  begin(): void {
    const { fleet, limits } = this;
    fleet.retryBudget.deposit();
    const first = this.book();
    this.send(first);
    if (
      limits.hedgeAfterMs > 0 &&
      first.mayBeHedged &&
      !this.isOver &&
      this.winner === undefined &&
      this.wait === undefined
    )
      this.after(limits.hedgeAfterMs, () => this.hedge());
  }

  /** A try with its places. */
  private book(): Try {
    const { fleet, model, ask } = this;
    if (!fleet.isSplit(model)) return new Attempt(this, fleet, fleet.lease(model, ask), false);
    const needs = ask.needs | Feature.handover;
    const places = this.doubts.book(ask.tried, (tried) => fleet.leasePair(model, { ...ask, needs, tried }));
    return pairTry(this, fleet, places);
  }

  private send(attempt: Try): void {
    this.spend(attempt);
    this.running.push(attempt);
    try {
      attempt.start({ ...this.request, requestId: idOfTry(this.request.requestId, ++this.made) }, this.limits);
    } catch (error) {
      this.remove(attempt);
      throw error;
    }
    if (this.isPaused) attempt.pause();
  }

  private spend({ spent, doubted }: Try): void {
    for (const slot of spent) this.ask.tried.add(slot);
    if (doubted !== undefined) this.doubts.add(doubted);
  }

  private remove(attempt: Try): void {
    const at = this.running.indexOf(attempt);
    if (at >= 0) this.running.splice(at, 1);
  }

  begins(attempt: Try): void {
    this.winner = attempt;
    this.callOff();
    if (attempt.pair !== undefined) this.doubts.settle(attempt.pair, (worker) => this.fleet.judge(worker, "failure"));
    const others = this.running.filter((other) => other !== attempt);
    for (const other of others) other.cancel();
    if (attempt.isHedge) this.fleet.observer.hedged("won");
    else if (others.some(({ isHedge }) => isHedge)) this.fleet.observer.hedged("lost");
  }

  ended(attempt: Try, failure: EngineError | undefined): void {
    this.remove(attempt);
    this.spend(attempt);
    if (this.winner !== undefined && this.winner !== attempt) return;
    if (failure === undefined || this.winner === attempt) this.end(failure);
    else if (this.running.length === 0 && !this.isOver) this.goOn(failure);
  }

  /** A try has failed, and nothing has come yet. */
  private goOn(failure: EngineError): void {
    this.callOff();
    const pauseMs = pauseBeforeNext(failure, this.made, this.fleet.policy.rules, Math.random());
    if (pauseMs === undefined) this.giveUp(failure);
    else if (pauseMs === 0) this.retry(failure);
    else {
      this.fleet.observer.paused(this.made, pauseMs);
      this.after(pauseMs, () => this.retry(failure));
    }
  }

  private retry(failure: EngineError): void {
    const { fleet } = this;
    const attempt = leaseOther(fleet, () => this.book());
    if (attempt === undefined) {
      this.giveUp(failure);
      return;
    }
    fleet.observer.retried(this.endpoint);
    try {
      this.send(attempt);
    } catch {
      this.end(failure); // the failure that led here is the one to tell
    }
  }

  private giveUp(failure: EngineError): void {
    if (this.made > 1) this.fleet.observer.exhausted(this.endpoint);
    this.end(failure);
  }

  /** The first worker is slow to begin: one that has nothing else to do is asked as well. */
  private hedge(): void {
    const { fleet, model, ask } = this;
    if (this.made >= fleet.policy.rules.attempts) return;
    const attempt = leaseOther(fleet, () => new Attempt(this, fleet, fleet.leaseIdle(model, ask), true));
    if (attempt === undefined) return;
    try {
      this.send(attempt);
    } catch {
      // the first one goes on
    }
  }

  private after(ms: number, run: () => void): void {
    this.wait = this.fleet.clock.after(ms, () => {
      this.wait = undefined;
      run();
    });
  }

  private callOff(): void {
    this.wait?.();
    this.wait = undefined;
  }

  private end(failure: EngineError | undefined): void {
    if (this.isOver) return;
    this.isOver = true;
    this.callOff();
    this.handler.onEnd(failure);
  }

  cancel(isEnough = false): void {
    if (this.isOver) return;
    this.isOver = true;
    this.callOff();
    for (const attempt of [...this.running]) attempt.cancel(isEnough);
    this.handler.onEnd(new EngineError("cancelled", "cancelled"));
  }

  pause(): void {
    this.isPaused = true;
    for (const attempt of this.running) attempt.pause();
  }

  resume(): void {
    this.isPaused = false;
    for (const attempt of this.running) attempt.resume();
  }
}
