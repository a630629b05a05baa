/** `least_load`: the seconds of work that a worker has, by SMG's formula. */
import type { RouteAsk } from "../ask.ts";
import type { Candidate, Choice, PolicyContext } from "../policy.ts";
import { batchTokens, pressure } from "../score.ts";
import { BasePolicy, chosen } from "./base.ts";
import { weightOf } from "./weight.ts";

/**
 * (tokens that wait and this prompt's + what runs) / throughput + weight x k / (1 - k), k = KV use. What is measured of a throughput
 * tells more of a worker's load than of its speed, so the fleet's largest stands for all; who is slower has a larger `cost`. KV use is
 * seen by tenths: finer, all requests would go to one worker until the next report.
 */
export class LeastLoadPolicy extends BasePolicy {
  readonly name = "least_load";
  protected override readonly isScored = true;

  protected among<C extends Candidate>(
    used: readonly C[],
    _candidates: readonly C[],
    ask: RouteAsk,
    { load, settings }: PolicyContext,
  ): Choice<C> {
    const seconds = this.weights.begin(used.length);
    const own = ask.tokens > 0 ? ask.tokens : settings.meanPrefillTokens;
    let throughput = 0;
    for (const candidate of used) throughput = Math.max(throughput, load.throughput(candidate) ?? 0);
    if (throughput < 1) throughput = settings.defaultThroughput;
    for (let i = 0; i < used.length; i++) {
      const candidate = used[i]!;
      const tokens = own + load.queuedTokens(candidate) + batchTokens(load.running(candidate), candidate.maxRunning);
      const tenths = Math.floor((load.kvUsage(candidate) ?? 0) * 10) / 10;
      seconds[i] = (tokens * weightOf(candidate)) / throughput + settings.kvPressureWeight * pressure(tenths);
    }
    return chosen(this.weights.least(used, load, this.turn), "turn");
  }
}
