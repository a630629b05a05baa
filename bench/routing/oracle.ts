/** Routers of the replay: the oracle, and those that a live run can be held against. */
import type { EngineState, Router } from "./replay.ts";

/** What the oracle weighs, in prompt tokens. */
export interface OracleWeights {
  /** What each request that an engine has adds to its work. */
  readonly requestTokens: number;
  /** Engines are near-equal within so many tokens, or such a share of the prompt. */
  readonly tieTokens: number;
  readonly tieShare: number;
}

/** Found by replays of the shapes: fewer tokens for a request crowd conversations onto few engines. */
export const ORACLE_WEIGHTS: OracleWeights = { requestTokens: 128, tieTokens: 64, tieShare: 0.02 };

/** Least work first; among near-equal engines the longest prefix, then the fewest requests, then the one that was used last the longest ago. */
export function oracle({ requestTokens, tieTokens, tieShare }: OracleWeights): Router {
  return ({ ids }, engines) => {
    const matched = engines.map((engine) => engine.matchedTokens(ids));
    const cost = engines.map(
      (engine, i) => ids.length - matched[i]! + engine.queuedTokens() + requestTokens * engine.open,
    );
    const limit = Math.min(...cost) + Math.max(tieTokens, tieShare * ids.length);
    return best(engines, (engine, i) => (cost[i]! > limit ? undefined : [-matched[i]!, engine.open, engine.lastUsed]));
  };
}

export const roundRobin: Router = (_ask, engines, turn) => turn % engines.length;

export const leastWork: Router = (_ask, engines) =>
  best(engines, (engine) => [engine.queuedTokens() + ORACLE_WEIGHTS.requestTokens * engine.open, engine.lastUsed]);

/** The one whose rank is least, read from left to right. */
function best(
  engines: readonly EngineState[],
  rankOf: (engine: EngineState, index: number) => readonly number[] | undefined,
): number {
  let at = -1;
  let least: readonly number[] = [];
  for (const [i, engine] of engines.entries()) {
    const rank = rankOf(engine, i);
    if (rank === undefined || (at >= 0 && !isLess(rank, least))) continue;
    at = i;
    least = rank;
  }
  return at;
}

function isLess(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((value, i) => value !== b[i]);
  return at >= 0 && a[at]! < b[at]!;
}
