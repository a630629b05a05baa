/** What the threads of a gateway choose workers by. */
import type { ValuesOf } from "../config/option.ts";
import { resolveOptions } from "../config/resolve.ts";
import { routingOptions } from "../config/routing-options.ts";
import type { ServeConfig } from "../config/serve-options.ts";
import type { Leg, PolicyName, PrefixIndex } from "../routing/policy.ts";
import { prefixIndex } from "../routing/prefix-index.ts";
import type { RoutingSettings } from "../routing/settings.ts";
import { PrefixBoard } from "../threads/prefix-board.ts";
import type { StickyTable } from "../threads/prefix-types.ts";
import { StickyBoard } from "../threads/sticky-board.ts";
import type { Boards } from "./boards.ts";

export interface RoutingRules {
  readonly policies: Readonly<Record<Leg, PolicyName>>;
  readonly settings: RoutingSettings;
  /** Tokens of a block of KV cache at workers that do not tell. */
  readonly blockSize: number;
}

/** The same in one serving thread, with what all threads share. */
export interface Routing extends RoutingRules {
  readonly index: PrefixIndex;
  readonly sticky: StickyTable;
}

/** Some of the settings of `collie serve`, by their part in a choice. */
export const routingRules = (config: ValuesOf<typeof routingOptions>): RoutingRules => ({
  policies: {
    regular: config.policy,
    prefill: config.prefillPolicy ?? config.policy,
    decode: config.decodePolicy ?? "least_load",
  },
  blockSize: config.blockSize,
  settings: {
    cacheThreshold: config.cacheThreshold,
    balanceAbsThreshold: config.balanceAbsThreshold,
    balanceRelThreshold: config.balanceRelThreshold,
    balanceTokenUsageThreshold: config.balanceTokenUsageThreshold,
    overloadTokenUsageThreshold: config.overloadTokenUsageThreshold,
    maxIdleMs: config.maxIdleSecs * 1000,
    assignmentMode: config.assignmentMode,
    sharesKeys: config.routingRedisUrl !== undefined,
    prefixTokenCount: config.prefixTokenCount,
    prefixHashLoadFactor: config.prefixHashLoadFactor,
    kvPressureWeight: config.leastLoadKvPressureWeight,
    defaultThroughput: config.leastLoadDefaultThroughput,
    meanPrefillTokens: config.leastLoadMeanPrefillTokens,
    bucketAdjustMs: config.bucketAdjustIntervalSecs * 1000,
  },
});

/** What thread number `thread` chooses by; asked for once. */
export const routingOf = (config: ServeConfig, { prefix, sticky }: Boards, thread: number): Routing => ({
  ...routingRules(config),
  index: prefixIndex(prefix, thread),
  sticky,
});

/** Memory of the index where there is no setting. */
const SMALL_MB = 1;

/** For a view that shares nothing with others. `rules` as set when nothing is set, unless given. */
export function ownRouting(rules: RoutingRules = defaultRules()): Routing {
  return { ...rules, index: prefixIndex(PrefixBoard.create(1, SMALL_MB), 0), sticky: StickyBoard.create() };
}

/** The rules when nothing is set. */
export const defaultRules = (): RoutingRules =>
  routingRules(resolveOptions(routingOptions, { args: [], env: {} }).values);
