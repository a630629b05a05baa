/** What the candidates of one choice have to do, each asked once. */
import type { Candidate, CandidateLoad, LoadFigures } from "../policy.ts";
import type { RoutingSettings } from "../settings.ts";
import { weightOf } from "./weight.ts";

/** Reused. */
export class Loads {
  /** Requests, and tokens of prompts that wait, by the candidates' indices. */
  running = new Int32Array(64);
  queued = new Float64Array(64);
  /** Share of the KV cache in use; below 0: not told. */
  kvUsage = new Float64Array(64);
  meanQueued = 0;
  /** Requests times cost. */
  private weighed = new Float64Array(64);
  private readonly figures: LoadFigures = { running: 0, queuedTokens: 0, kvUsage: -1 };
  private least = 0;
  private most = 0;

  read(candidates: readonly Candidate[], load: CandidateLoad): void {
    const count = candidates.length;
    if (count > this.running.length) {
      this.running = new Int32Array(2 * count);
      this.queued = new Float64Array(2 * count);
      this.kvUsage = new Float64Array(2 * count);
      this.weighed = new Float64Array(2 * count);
    }
    let least = Number.POSITIVE_INFINITY;
    let most = 0;
    let sum = 0;
    const { figures, running, queued, kvUsage, weighed: all } = this;
    for (let i = 0; i < count; i++) {
      const candidate = candidates[i]!;
      if (load.read === undefined) readEach(load, candidate, figures);
      else load.read(candidate, figures);
      running[i] = figures.running;
      kvUsage[i] = figures.kvUsage;
      sum += queued[i] = figures.queuedTokens;
      const weighed = (all[i] = figures.running * weightOf(candidate));
      if (weighed < least) least = weighed;
      if (weighed > most) most = weighed;
    }
    this.least = least;
    this.most = most;
    this.meanQueued = sum / count;
  }

  /** The most loaded has more requests than the least by both thresholds; one of twice the cost should have half of them. */
  isBalanced({ balanceAbsThreshold, balanceRelThreshold }: RoutingSettings): boolean {
    return this.most - this.least <= balanceAbsThreshold || this.most <= balanceRelThreshold * this.least;
  }

  /** The candidate is nearer to the most loaded than to the least. */
  isHigh(index: number): boolean {
    return 2 * this.weighed[index]! > this.least + this.most;
  }
}

function readEach(load: CandidateLoad, candidate: Candidate, into: LoadFigures): void {
  into.running = load.running(candidate);
  into.queuedTokens = load.queuedTokens(candidate);
  into.kvUsage = load.kvUsage(candidate) ?? -1;
}
