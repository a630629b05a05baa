/** How many requests run at once: the others wait for their turn. */
import { ClientClosedError, QueueFullError, QueueTimeoutError } from "../errors.ts";
import { type Counter, MetricRegistry } from "../telemetry/registry.ts";
import type { LimitBoard } from "../threads/limit-board.ts";
import type { RequestScope } from "./request-scope.ts";

/** Routes whose requests count: those that models work for. */
export const LIMITED_PATHS: ReadonlySet<string> = new Set([
  "/v1/chat/completions",
  "/v1/completions",
  "/generate",
  "/v1/embeddings",
  "/rerank",
  "/v1/rerank",
  "/v1/classify",
  "/v1/responses",
  "/v1/responses/compact",
  "/v1/messages",
  "/v1/interactions",
  "/v1beta/interactions",
  "/v1alpha/interactions",
]);

/** Those that wait look whether they may run after this at the latest, though nobody told them: the thread that was told may have died. */
const LOOK_MS = 100;

/** A request that wants to run. */
interface Waiting {
  readonly permit: number;
  /** On the clock of `performance.now`. */
  readonly until: number;
  readonly run: (permit: number) => void;
  readonly fail: (reason: unknown) => void;
}

/** One thread's side of the limit. Its requests run in the order in which they came; threads take turns. */
export class Admission {
  /** The permits of the requests that run. */
  private readonly running = new Map<RequestScope, number>();
  /** In the order in which they came, which is the order in which their time runs out. */
  private readonly waiting = new Map<RequestScope, Waiting>();
  private isLooking = false;
  private readonly allowed: Counter;
  private readonly rejected: Counter;

  /** `queueTimeoutSecs`: how long a request waits at most. */
  constructor(
    private readonly limits: LimitBoard,
    private readonly queueTimeoutSecs: number,
    metrics: MetricRegistry = new MetricRegistry(),
  ) {
    this.allowed = metrics.counter("smg_http_rate_limit_total", "allowed");
    this.rejected = metrics.counter("smg_http_rate_limit_total", "rejected");
  }

  /**
   * Resolves when the request may run; undefined: at once. `leave` must be called when it is over. Throws QueueFullError at once, or
   * rejects with QueueTimeoutError, or with the scope's reason when it is aborted meanwhile.
   */
  enter(scope: RequestScope): Promise<void> | undefined {
    scope.signal.throwIfAborted();
    const { limits } = this;
    const isFirst = !limits.someoneWaits();
    if (isFirst) {
      const permit = limits.tryRun();
      if (permit >= 0) {
        this.running.set(scope, permit);
        this.allowed.add();
        return undefined;
      }
    }
    const place = limits.tryWait();
    if (place < 0) {
      this.rejected.add();
      throw new QueueFullError("Too many requests wait for their turn", { retryAfterSecs: 1 });
    }
    return this.wait(scope, place, isFirst);
  }

  private wait(scope: RequestScope, place: number, isFirst: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => this.giveUp(scope, scope.signal.reason);
      const off = () => scope.signal.removeEventListener("abort", onAbort);
      scope.signal.addEventListener("abort", onAbort, { once: true });
      this.waiting.set(scope, {
        permit: place,
        until: performance.now() + this.queueTimeoutSecs * 1000,
        run: (permit) => {
          off();
          this.running.set(scope, permit);
          this.allowed.add();
          resolve();
        },
        fail: (reason) => {
          off();
          reject(reason);
        },
      });
      if (!this.isLooking) void this.look(isFirst);
    });
  }

  /** The request is over, or wants to wait no more. */
  leave(scope: RequestScope): void {
    const permit = this.running.get(scope);
    if (permit === undefined) {
      this.giveUp(scope, new ClientClosedError());
    } else {
      this.running.delete(scope);
      this.limits.ran(permit);
    }
  }

  private giveUp(scope: RequestScope, reason: unknown): void {
    this.take(scope)?.fail(reason);
  }

  /** It waits no more. */
  private take(scope: RequestScope): Waiting | undefined {
    const its = this.waiting.get(scope);
    if (its === undefined) return undefined;
    this.waiting.delete(scope);
    this.limits.waited(its.permit);
    return its;
  }

  /** Lasts as long as requests wait. `now`: nobody waited before them; else it is the turn of others when a place is free. */
  private async look(now: boolean): Promise<void> {
    const { limits } = this;
    this.isLooking = true;
    for (let looks = now; this.waiting.size > 0; looks = true) {
      const seen = limits.turn(); // before looking: what changes from here on is not missed
      if (looks) this.runNext();
      if (this.waiting.size > 0) await limits.changed(seen, LOOK_MS);
      this.expire();
    }
    this.isLooking = false;
    limits.wakeOne(); // who was woken for nobody wakes another one
  }

  private runNext(): void {
    for (const scope of this.waiting.keys()) {
      const permit = this.limits.tryRun();
      if (permit < 0) return;
      this.take(scope)?.run(permit);
    }
  }

  private expire(): void {
    const now = performance.now();
    for (const [scope, { until }] of this.waiting) {
      if (until > now) return;
      const text = `The request waited ${this.queueTimeoutSecs} s for its turn`;
      this.rejected.add();
      this.giveUp(scope, new QueueTimeoutError(text, { retryAfterSecs: 1 }));
    }
  }
}
