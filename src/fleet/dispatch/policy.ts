/** What is done when a worker fails, and how long anybody waits, as set. */
import { fallbackChain, namedCards, parseCard } from "../../config/model-cards.ts";
import type { ServeConfig } from "../../config/serve-options.ts";
import type { AttemptRules } from "./attempts.ts";

/** Milliseconds; 0 = no limit. */
export interface TimeLimits {
  /** From the sending of a request to its first token. */
  readonly firstTokenMs: number;
  /** Between two of its tokens. */
  readonly interTokenMs: number;
}

export interface ModelLimits extends TimeLimits {
  /** Silence after which a second worker is asked as well; 0 = never. */
  readonly hedgeAfterMs: number;
}

export interface DispatchPolicy {
  readonly rules: AttemptRules;
  /** `model`: its id, here as below. */
  limitsOf(model: string): ModelLimits;
  /** Seconds that a request may take in all; 0 = as long as it likes. */
  totalSecsOf(model: string): number;
  /** Models that answer in place of one, by any name of it, in their order. */
  fallbacksOf(name: string): readonly string[];
}

const NO_LIMITS: ModelLimits = { firstTokenMs: 0, interTokenMs: 0, hedgeAfterMs: 0 };

/** What is done without settings. */
export const DEFAULT_POLICY: DispatchPolicy = {
  rules: { attempts: 5, initialBackoffMs: 50, maxBackoffMs: 30_000, multiplier: 1.5, jitter: 0.2 },
  limitsOf: () => NO_LIMITS,
  totalSecsOf: () => 0,
  fallbacksOf: () => [],
};

export function dispatchPolicy(config: ServeConfig): DispatchPolicy {
  const cards = namedCards(config.modelCard.map(parseCard), config.modelAlias);
  const forAll: ModelLimits = {
    firstTokenMs: config.firstTokenTimeoutSecs * 1000,
    interTokenMs: config.interTokenTimeoutSecs * 1000,
    hedgeAfterMs: config.hedgeAfterMs,
  };
  return {
    rules: {
      attempts: config.disableRetries ? 1 : config.retryMaxRetries,
      initialBackoffMs: config.retryInitialBackoffMs,
      maxBackoffMs: config.retryMaxBackoffMs,
      multiplier: config.retryBackoffMultiplier,
      jitter: config.retryJitterFactor,
    },
    limitsOf(model) {
      const card = cards.get(model);
      if (card === undefined) return forAll;
      const ms = (secs: number | undefined) => (secs === undefined ? undefined : secs * 1000);
      return {
        firstTokenMs: ms(card.firstTokenTimeoutSecs) ?? forAll.firstTokenMs,
        interTokenMs: ms(card.interTokenTimeoutSecs) ?? forAll.interTokenMs,
        hedgeAfterMs: card.hedgeAfterMs ?? forAll.hedgeAfterMs,
      };
    },
    totalSecsOf: (model) => cards.get(model)?.requestTimeoutSecs ?? config.requestTimeoutSecs,
    fallbacksOf: (name) => fallbackChain(name, cards),
  };
}
