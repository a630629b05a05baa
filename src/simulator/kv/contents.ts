import { type KvCache, ROOT_HASH } from "../core/kv-cache.ts";
import type { Ranks } from "../core/ranks.ts";
import { wireHash } from "./wire-hash.ts";

/** A cached block, as `/blocks` shows it. */
export interface CachedBlock {
  /** As events tell it, in decimal: a signed 64-bit number. */
  readonly hash: string;
  /** Hash of the block before it; null: it begins a prompt. */
  readonly parent: string | null;
  readonly tokenIds: readonly number[];
  /** Blocks with that hash: engines with a block table may hold the same prefix twice. */
  readonly copies: number;
}

/** What the cache of a rank holds: parents before their children. */
export interface RankContents {
  readonly rank: number;
  readonly blockSize: number;
  readonly blocks: readonly CachedBlock[];
}

/** What can be found in the caches now, blocks in use included. */
export function cacheContents({ drivers }: Ranks): RankContents[] {
  return drivers.map(({ core }, rank) => ({ rank, blockSize: core.cache.blockSize, blocks: blocksOf(core.cache) }));
}

function blocksOf(cache: KvCache): CachedBlock[] {
  const found = new Map<number, { -readonly [K in keyof CachedBlock]: CachedBlock[K] }>();
  for (const { hash, parent, tokenIds } of cache.blocks()) {
    const known = found.get(hash);
    if (known) known.copies++;
    else
      found.set(hash, {
        hash: String(wireHash(hash)),
        parent: parent === undefined || parent === ROOT_HASH ? null : String(wireHash(parent)),
        tokenIds: [...(tokenIds ?? [])],
        copies: 1,
      });
  }
  return [...found.values()];
}
