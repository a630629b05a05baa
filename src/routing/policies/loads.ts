/** What the candidates of one choice have to do, each asked once. */
import type { Candidate, CandidateLoad } from "../policy.ts";

/** Reused. */
export class Loads {
  /** Requests, and tokens of prompts that wait, by the candidates' indices. */
  running = new Int32Array(64);
  queued = new Float64Array(64);
  /** Of all of them. */
  leastRunning = 0;
  mostRunning = 0;
  meanQueued = 0;

  read(candidates: readonly Candidate[], load: CandidateLoad): void {
    const count = candidates.length;
    if (count > this.running.length) {
      this.running = new Int32Array(2 * count);
      this.queued = new Float64Array(2 * count);
    }
    let least = Number.POSITIVE_INFINITY;
    let most = 0;
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const running = load.running(candidates[i]!);
      const queued = load.queuedTokens(candidates[i]!);
      this.running[i] = running;
      this.queued[i] = queued;
      if (running < least) least = running;
      if (running > most) most = running;
      sum += queued;
    }
    this.leastRunning = least;
    this.mostRunning = most;
    this.meanQueued = sum / count;
  }
}
