import { Count, Level, type LevelCode, openCacheBoard } from "./board.ts";

/** What a level of a tokenizer cache has done, over all threads, and what it holds. */
export interface LevelStats {
  readonly level: "l0" | "l1";
  readonly enabled: boolean;
  /** Lookups that were answered; those of L1 are misses of L0 that are long enough to be cut. */
  readonly hits: number;
  readonly misses: number;
  readonly insertions: number;
  readonly evictions: number;
  /** Answers that were found wrong by the self-check. */
  readonly mismatches: number;
  /** L0: texts; L1: beginnings of texts. */
  readonly entries: number;
  /** Bytes of memory in use. Texts and ids, which both levels share, are counted for L0, or for L1 if there is no L0. */
  readonly bytes: number;
}

/** The state of both levels. Looks at every slot: some 0.2 ms. */
export function cacheStats(memory: SharedArrayBuffer): readonly LevelStats[] {
  const board = openCacheBoard(memory);
  return (Object.entries(Level) as ["l0" | "l1", LevelCode][]).map(([name, level]) => {
    const insertions = board.read(level, Count.insertions);
    const entries = board.entries(level);
    // What was put and is no longer there was evicted. Others go on meanwhile, and the sum must not fall.
    const before = board.read(level, Count.evictions);
    const evictions = Math.max(before, insertions - entries);
    board.count(level, Count.evictions, evictions - before);
    return {
      level: name,
      enabled: board.isOn(level),
      hits: board.read(level, Count.hits),
      misses: board.read(level, Count.misses),
      insertions,
      evictions,
      mismatches: board.read(level, Count.mismatches),
      entries,
      bytes: board.bytes(level, entries),
    };
  });
}
