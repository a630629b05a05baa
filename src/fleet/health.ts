/** When a worker counts as healthy: by checks in a row, not by one. */

/** As SMG names them. */
export type HealthStatus = "pending" | "ready" | "not_ready" | "failed";

export interface Thresholds {
  /** Checks in a row that must fail before it is taken out. */
  readonly failures: number;
  /** Checks in a row that must succeed before one that was taken out is taken in again. */
  readonly successes: number;
}

/** A worker that stays unhealthy for so many times the threshold has failed for good: it may be removed. */
const FAILED_AFTER = 3;

/**
 * pending: it never was ready, and will be when it has registered. not_ready: it was, and returns. failed: it is given up, though it
 * may still return.
 */
export class Health {
  private state: HealthStatus = "pending";
  private failures = 0;
  private successes = 0;

  constructor(public thresholds: Thresholds) {}

  get status(): HealthStatus {
    return this.state;
  }

  /** Nothing speaks against it at the moment. */
  get isCalm(): boolean {
    return this.state === "ready" && this.failures === 0;
  }

  /** It has registered, or told who it is, which is more than a check. */
  registered(): void {
    this.failures = 0;
    this.become("ready");
  }

  /** A check succeeded. True if that makes it ready again. */
  good(): boolean {
    this.failures = 0;
    this.successes++;
    if (this.state === "ready" || this.successes < this.thresholds.successes) return false;
    return this.become("ready");
  }

  /** A check failed. True if that changes the status. */
  bad(): boolean {
    this.successes = 0;
    this.failures++;
    if (this.state === "ready" && this.failures >= this.thresholds.failures) return this.become("not_ready");
    if (this.state === "not_ready" && this.failures >= FAILED_AFTER * this.thresholds.failures)
      return this.become("failed");
    return false;
  }

  /** It is taken out at once, whatever the checks said. True if it was in. */
  out(): boolean {
    this.successes = 0;
    return this.state === "ready" && this.become("not_ready");
  }

  /** It took too long to become ready. True if it had not. */
  overdue(): boolean {
    return this.state === "pending" && this.become("failed");
  }

  private become(state: HealthStatus): true {
    this.state = state;
    return true;
  }
}
