/**
 * A stream through simulated engines in virtual time: no sockets, no gateway, no waiting. Where a live run measures what a gateway
 * makes of what it knows, this shows what can be made of it, to a router that sees every engine from within.
 */
import { EngineCore } from "../../src/simulator/core/engine-core.ts";
import type { CoreOptions } from "../../src/simulator/core/options.ts";
import type { Sequence } from "../../src/simulator/core/sequence.ts";
import { type Percentiles, percentiles } from "../loadgen/stats.ts";
import { blockHashes } from "./block-hashes.ts";
import { maxOverMean, sum } from "./engine-fleet.ts";
import type { TokenAsk } from "./prompt-tokens.ts";

/** One engine at a moment. */
export interface EngineState {
  readonly core: EngineCore;
  /** Requests that it has. */
  readonly open: number;
  /** Prompt tokens that it has yet to compute. */
  queuedTokens(): number;
  /** Tokens of a prompt that it holds, or will when those before it are computed. */
  matchedTokens(ids: Uint32Array): number;
  /** When it got its last request, in milliseconds; 0: never. */
  readonly lastUsedAt: number;
}

/** Where a request goes, and what is to be done when its first token is there, and when all are. */
export interface Route {
  /** Number of the engine. */
  readonly engine: number;
  onFirst?(): void;
  onEnd?(): void;
}

export type Router = (ask: TokenAsk, engines: readonly EngineState[]) => Route;

export interface ReplayResult {
  readonly requests: number;
  readonly promptTokens: number;
  readonly hitRate: number;
  readonly ttftMeanMs: number;
  readonly ttft: Percentiles;
  readonly latencyMeanMs: number;
  readonly tokenSpread: number;
  readonly computedSpread: number;
  readonly requestSpread: number;
}

class VirtualEngine implements EngineState {
  readonly core: EngineCore;
  lastUsedAt = 0;
  requests = 0;
  promptTokens = 0;
  cachedTokens = 0;
  /** End of the running step; undefined: it rests. */
  private endsAt: number | undefined;
  private now = 0;

  constructor(options: CoreOptions) {
    this.core = new EngineCore(options);
  }

  get open(): number {
    return this.core.running.length + this.core.waiting.length;
  }

  get nextAt(): number {
    return this.endsAt ?? Number.POSITIVE_INFINITY;
  }

  queuedTokens(): number {
    const { running, waiting } = this.core;
    return sum(waiting.map((s) => s.uncachedOnArrival)) + sum(running.map((s) => Math.max(0, s.target - s.computed)));
  }

  matchedTokens(ids: Uint32Array): number {
    const { core } = this;
    const { blockSize } = core.options;
    let most = core.cache.matchedTokens(ids, ids.length - 1);
    for (const sequence of core.waiting) most = Math.max(most, commonBlocks(sequence, ids, blockSize));
    for (const sequence of core.running)
      if (sequence.computed < sequence.target) most = Math.max(most, commonBlocks(sequence, ids, blockSize));
    return most;
  }

  submit(ask: TokenAsk, now: number, onFirst: (ttftMs: number) => void, onEnd: (totalMs: number) => void): void {
    const { ids, maxTokens } = ask;
    this.requests++;
    this.promptTokens += ids.length;
    this.core.submit({
      prompt: ids,
      plan: (cachedTokens) => {
        this.cachedTokens += cachedTokens;
        return { length: maxTokens, idAt: (position) => ids[position % ids.length]!, finishReason: "length" };
      },
      onToken: (sequence) => {
        if (sequence.generated === 1) onFirst(this.now - ask.atMs);
      },
      onFinish: () => onEnd(this.now - ask.atMs),
    });
    if (this.endsAt === undefined) this.begin(now);
  }

  /** Ends the running step, and begins the next. */
  advance(): void {
    this.now = this.nextAt;
    this.endsAt = undefined;
    this.core.endStep(this.now);
    if (this.core.busy) this.begin(this.now);
  }

  private begin(now: number): void {
    this.endsAt = now + this.core.beginStep(now).durationMs;
  }
}

/** What would be if one engine with endless memory had all prompts of a stream, one at a time: no choice of engines does better. */
export interface Bounds {
  /** Share of the prompts' tokens that stood in the same place of an earlier one. */
  readonly hitRate: number;
  readonly ttftMeanMs: number;
}

export function boundsOf(asks: readonly TokenAsk[], options: CoreOptions): Bounds {
  const { blockSize, prefillTokensPerSecond, decodeBaseMs, decodePerRequestMs } = options;
  const seen = new Set<number>();
  let repeated = 0;
  let ms = 0;
  for (const { ids } of asks) {
    let cached = 0;
    // The block of a prompt's last token is computed always.
    for (const hash of blockHashes(ids.subarray(0, ids.length - 1), blockSize)) {
      if (seen.has(hash)) cached += blockSize;
      else seen.add(hash);
    }
    repeated += cached;
    ms += Math.max(((ids.length - cached) * 1000) / prefillTokensPerSecond, decodeBaseMs + decodePerRequestMs);
  }
  return { hitRate: repeated / sum(asks.map(({ ids }) => ids.length)), ttftMeanMs: ms / asks.length };
}

function commonBlocks({ request }: Sequence, ids: Uint32Array, blockSize: number): number {
  const limit = Math.min(request.prompt.length, ids.length - 1);
  let at = 0;
  while (at < limit && request.prompt[at] === ids[at]) at++;
  return at - (at % blockSize);
}

/** Sends a stream through `count` fresh engines. */
export function replay(asks: readonly TokenAsk[], count: number, options: CoreOptions, router: Router): ReplayResult {
  const engines = Array.from({ length: count }, () => new VirtualEngine(options));
  const ttft: number[] = [];
  const total: number[] = [];
  const stepUntil = (moment: number): void => {
    for (;;) {
      const next = engines.reduce((first, engine) => (engine.nextAt < first.nextAt ? engine : first));
      if (next.nextAt > moment || next.nextAt === Number.POSITIVE_INFINITY) return;
      next.advance();
    }
  };
  for (const ask of asks) {
    stepUntil(ask.atMs);
    const route = router(ask, engines);
    const engine = engines[route.engine]!;
    engine.lastUsedAt = ask.atMs + 1;
    const onFirst = (ms: number): void => {
      ttft.push(ms);
      route.onFirst?.();
    };
    const onEnd = (ms: number): void => {
      total.push(ms);
      route.onEnd?.();
    };
    engine.submit(ask, ask.atMs, onFirst, onEnd);
  }
  stepUntil(Number.MAX_VALUE);
  const mean = (values: readonly number[]) => sum(values) / values.length;
  const promptTokens = sum(engines.map((e) => e.promptTokens));
  return {
    requests: asks.length,
    promptTokens,
    hitRate: sum(engines.map((e) => e.cachedTokens)) / promptTokens,
    ttftMeanMs: mean(ttft),
    ttft: percentiles(ttft)!,
    latencyMeanMs: mean(total),
    tokenSpread: maxOverMean(engines.map((e) => e.promptTokens)),
    computedSpread: maxOverMean(engines.map((e) => e.promptTokens - e.cachedTokens)),
    requestSpread: maxOverMean(engines.map((e) => e.requests)),
  };
}
