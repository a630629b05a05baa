/**
 * Finds segments by the key of their first block. An entry says who has all of a segment's blocks, where they are the same, and how the
 * segment ends; so whoever looks up a chain reads one line of memory for ten blocks. An entry that has no room in its line lies in one
 * of the next ones, and each line before that counts it.
 */
import { ENTRY_SETS, ID_BITS, ID_MASK, IDS, LASTS, LINE, lines, MOST_OVER, recordOf, table } from "./layout.as";

/** In the place of an entry's sets: they differ from block to block, or are being changed. */
export const MIXED: u32 = 0xffffffff;

const K2: u64 = 0xd6e8feb86659fd93;

@inline
export function lineOf(key: u64): usize {
  return table + <usize>((((key * K2) >> 32) * lines) >> 32) * LINE;
}
@inline
export function tagOf(key: u64): u32 {
  return <u32>(key >> 32);
}
/** What tells how a segment ends. */
@inline
export function lastOf(key: u64): u32 {
  return <u32>key;
}

/** Bits for those of a line's four words that are as given. */
@inline
export function equal(at: usize, word: u32): u32 {
  return <u32>i32x4.bitmask(i32x4.eq(v128.load(at), i32x4.splat(<i32>word)));
}
@inline
export function over(line: usize): u32 {
  return load<u32>(line + IDS) >> ID_BITS;
}
@inline
export function next(line: usize): usize {
  const at = line + LINE;
  return at == table + <usize>lines * LINE ? table : at;
}
@inline
export function idOf(entry: usize): u32 {
  return load<u32>(entry + IDS) & ID_MASK;
}

/** The entry of the segment that begins with a key, 0 if there is none. Called with the lock held. */
export function findEntry(key: u64): usize {
  const tag = tagOf(key);
  const home = lineOf(key);
  let line = home;
  do {
    for (let m = equal(line, tag); m; m &= m - 1) {
      const entry = line + (<usize>ctz(m) << 2);
      if (load<u32>(entry + ENTRY_SETS) && load<u64>(recordOf(idOf(entry))) == key) return entry;
    }
    if (!over(line)) return 0;
    line = next(line);
  } while (line != home);
  return 0;
}

/** The entry of a segment, 0 if it has none, as where a thread died. */
export function entryOf(segment: u32, key: u64): usize {
  const tag = tagOf(key);
  const home = lineOf(key);
  let line = home;
  do {
    for (let m = equal(line, tag); m; m &= m - 1) {
      const entry = line + (<usize>ctz(m) << 2);
      if (load<u32>(entry + ENTRY_SETS) && idOf(entry) == segment) return entry;
    }
    if (!over(line)) return 0;
    line = next(line);
  } while (line != home);
  return 0;
}

/** A new entry, which says nothing of the sets yet. */
export function putEntry(segment: u32, key: u64): usize {
  let line = lineOf(key);
  while (true) {
    const m = equal(line + ENTRY_SETS, 0);
    if (m) {
      const entry = line + (<usize>ctz(m) << 2);
      store<u32>(entry, tagOf(key));
      store<u32>(entry + IDS, (load<u32>(entry + IDS) & ~ID_MASK) | segment);
      atomic.store<u32>(entry + ENTRY_SETS, MIXED); // last: until then nobody sees it
      return entry;
    }
    const more = over(line);
    if (more < MOST_OVER) store<u32>(line + IDS, load<u32>(line + IDS) + (1 << ID_BITS));
    line = next(line);
  }
}

export function dropEntry(entry: usize, key: u64): void {
  atomic.store<u32>(entry + ENTRY_SETS, 0);
  const end = entry & ~(LINE - 1);
  for (let line = lineOf(key); line != end; line = next(line)) {
    const more = over(line);
    // what counts no further is never counted back
    if (more && more < MOST_OVER) store<u32>(line + IDS, load<u32>(line + IDS) - (1 << ID_BITS));
  }
}

@inline
export function setLast(entry: usize, key: u64): void {
  atomic.store<u32>(entry + LASTS, lastOf(key));
}
@inline
export function setEntry(entry: usize, sets: u32): void {
  atomic.store<u32>(entry + ENTRY_SETS, sets);
}
