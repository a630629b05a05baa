/** Looks up a chain. Takes no lock: what changes meanwhile is seen by the version of the sets, and looked up again. */
import {
  BLOCK_SETS, ENTRY_SETS, EVICTED, EXACT, GROUP, IDS, ID_MASK, LASTS, LIVE, recordOf, SHAPE, STAMP, VERSION, words,
} from "./layout.as";
import { bitsOf } from "./sets.as";
import { equal, idOf, lastOf, lineOf, MIXED, next, over, tagOf } from "./table.as";
import { elapsed, GUESS_S, guessedTime, PROMISE_S } from "./time.as";

/** Stretches of equal holders that are told apart in a chain; what is behind them is not looked at. */
const MOST_SPANS: u32 = 64;
/** Groups that are surveyed at once, and of how many one is looked at first. */
const WINDOW: u32 = 64;
const STRIDE: u32 = 8;
const TRIES: u32 = 3;

// Room of the thread: depths of members, bits of those whose depth is exact; then spans.
export let depths: usize = 0;
export let exacts: usize = 0;
let ends: usize = 0;
let spanSets: usize = 0;
/** A byte for each group of the window: those from here to the next that was looked at first are alike. */
let skips: usize = 0;
let stamps: usize = 0; // at first the last segment of each
export let spans: u32 = 0;
export const MATCH_BYTES: usize = 4096 + 128 + 3 * 256 + 64;

let version: u32 = 0;
let time: u32 = 0;
/** Stretches end where another segment was guessed at another time, too: in the first look, the last segment of each speaks for all. */
let isThorough = false;
/** Nobody asks for it; but without it nothing would be read. */
export let fetched: u32 = 0;

export function openMatch(at: usize): void {
  depths = at;
  exacts = at + 4096;
  ends = exacts + 128;
  spanSets = ends + 256;
  stamps = spanSets + 256;
  skips = stamps + 256;
}

/** What is held of a chain at a time in seconds. */
export function match(keys: usize, count: u32, seconds: u32): void {
  time = guessedTime(seconds);
  for (let i: u32 = 0; i < TRIES; i++) {
    forget();
    version = atomic.load<u32>(VERSION);
    isThorough = false;
    findSpans(keys, count);
    if (isDoubted()) {
      isThorough = true;
      findSpans(keys, count);
    }
    findDepths();
    if (isCurrent()) return;
  }
  spans = 0;
  forget();
}

/** Whether sets mean what they meant in the last match. */
export function isCurrent(): bool {
  return atomic.load<u32>(VERSION) == version;
}

function forget(): void {
  memory.fill(depths, 0, <usize>words() << 7);
  memory.fill(exacts, 0, <usize>words() << 2);
}

@inline
function keyOf(keys: usize, i: u32): u64 {
  return load<u64>(keys + (<usize>i << 3));
}

/**
 * Group by group. Memory is slow, but gives many places at a time; and where every eighth group has the same holders, those between are not
 * looked at. So it is asked for the lines of every eighth group, then for those between where they differ, and for the segments that
 * one has to look into.
 */
function findSpans(keys: usize, count: u32): void {
  spans = 0;
  let end: u32 = 0;
  for (let from: u32 = 0; from < count && spans < MOST_SPANS; from += WINDOW * GROUP) {
    const to = min(count, from + WINDOW * GROUP);
    if (isThorough) memory.fill(skips, 0, WINDOW);
    else survey(keys, from, to, count);
    end = walk(keys, from, to, end, count);
    if (!end) break;
  }
  for (let i: u32 = 0; i < spans; i++) {
    const at = <usize>i << 2;
    if (load<u32>(spanSets + at) & 0xffff)
      store<u32>(stamps + at, <u32>load<u16>(recordOf(load<u32>(stamps + at)) + STAMP));
  }
}

/** Something is not believed for its age: what lies before it in its stretch may be younger. */
function isDoubted(): bool {
  const last = words();
  for (let i: u32 = 0; i < spans; i++) {
    const set = load<u32>(spanSets + (<usize>i << 2)) & 0xffff;
    const age = set ? stageOf(load<u32>(stamps + (<usize>i << 2))) : 0;
    if (!age) continue;
    for (let word: u32 = 0; word < last; word++) {
      const at = <usize>word << 2;
      const old = load<u32>(bitsOf(set) + at) & load<u32>(LIVE + at) & ~told(i, word);
      if (age > 1 ? old : old & load<u32>(EXACT + at)) return true;
    }
  }
  return false;
}

/** 0: what was guessed then is believed of all, 1: of those that send no events, 2: of nobody. */
@inline
function stageOf(stamp: u32): u32 {
  const age = elapsed(stamp, time);
  return age > GUESS_S ? 2 : <u32>(age > PROMISE_S);
}
@inline
function stageOfSegment(segment: u32): u32 {
  return stageOf(load<u16>(recordOf(segment) + STAMP));
}

/** Finds out which groups need not be looked at, and has the memory for the others come. */
function survey(keys: usize, from: u32, to: u32, count: u32): void {
  let sum: u32 = 0;
  let at = from;
  for (; at < to; at += STRIDE * GROUP) sum ^= load<u32>(lineOf(keyOf(keys, at)));
  const last = to - 1 - ((to - 1) % GROUP);
  sum ^= load<u32>(lineOf(keyOf(keys, last)));
  memory.fill(skips, 0, WINDOW);
  let before = peek(keys, from, count);
  for (at = from; before && at < last; ) {
    const next = min(at + STRIDE * GROUP, last);
    const sets = peek(keys, next, count);
    if (sets == before && sets != MIXED) store<u8>(skips + <usize>((at - from) / GROUP), 1);
    else for (let i = at + GROUP; i < next; i += GROUP) sum ^= load<u32>(lineOf(keyOf(keys, i)));
    at = next;
    before = sets;
  }
  const end = min(at, last);
  for (let i = from; i < end; i += GROUP) {
    if (load<u8>(skips + <usize>((i - from) / GROUP))) i += (STRIDE - 1) * GROUP;
    else peek(keys, i, count);
  }
  fetched += sum;
}

/** The sets of all of a group's blocks, if its segment alone tells; 0 if it is not there, MIXED otherwise. */
function peek(keys: usize, at: u32, count: u32): u32 {
  const key = keyOf(keys, at);
  const tag = tagOf(key);
  const line = lineOf(key);
  const m = equal(line, tag);
  if (!m) return over(line) ? MIXED : 0;
  const entry = line + (<usize>ctz(m) << 2);
  const sets = load<u32>(entry + ENTRY_SETS);
  if (sets == MIXED || at + GROUP > count || load<u32>(entry + LASTS) != lastOf(keyOf(keys, at + GROUP - 1))) {
    const record = recordOf(idOf(entry));
    fetched += load<u32>(record) ^ load<u32>(record + SHAPE);
    return MIXED;
  }
  return sets;
}

/** Goes on from block `i` to the end of the surveyed part; gives the block at which nothing is found, 0. */
function walk(keys: usize, from: u32, to: u32, i: u32, count: u32): u32 {
  let border = from + GROUP;
  const lastGroup = to - 1 - ((to - 1) % GROUP);
  let skip = skips;
  while (i < to) {
    for (; border <= i; skip++) border += GROUP;
    if (i + GROUP == border && <u32>load<u8>(skip)) {
      const next = i + STRIDE * GROUP;
      i = next < to ? next : lastGroup;
      continue;
    }
    let end = look(keys, i, min(border, count), count);
    if (!end) {
      // a segment alone may have been thrown out of a full index
      if (i + GROUP != border || border >= count || !load<u32>(EVICTED)) return 0;
      end = look(keys, border, min(border + GROUP, count), count);
      if (!end) return 0;
    }
    i = end;
  }
  return i;
}

/** The number behind the blocks of the segment that begins with block i of the chain; 0 where there is none, or nobody has that block. */
function look(keys: usize, i: u32, stop: u32, count: u32): u32 {
  const key = keyOf(keys, i);
  const tag = tagOf(key);
  const home = lineOf(key);
  let line = home;
  do {
    for (let m = equal(line, tag); m; m &= m - 1) {
      const entry = line + (<usize>ctz(m) << 2);
      const sets = atomic.load<u32>(entry + ENTRY_SETS);
      if (!sets) continue;
      const segment = atomic.load<u32>(entry + IDS) & ID_MASK;
      const last = atomic.load<u32>(entry + LASTS);
      if (sets != MIXED && atomic.load<u32>(entry) == tag && atomic.load<u32>(entry + ENTRY_SETS) == sets)
        for (let end = stop; end > i; end--)
          if (lastOf(keyOf(keys, end - 1)) == last) {
            span(end, sets, segment);
            return end;
          }
      // the chain leaves the segment, or its blocks are not all alike
      const end = lookInto(keys, i, stop, segment);
      if (end) return end;
    }
    if (!over(line)) return 0;
    line = next(line);
  } while (line != home);
  return 0;
}

function lookInto(keys: usize, from: u32, stop: u32, segment: u32): u32 {
  const record = recordOf(segment);
  let at = record;
  let its = record + BLOCK_SETS;
  let i = from;
  for (; i < stop; i++) {
    const key = keyOf(keys, i);
    if (atomic.load<u64>(at) != key) break;
    const sets = atomic.load<u32>(its);
    // another block may have taken the place since; its key is written before its sets
    if (!sets || atomic.load<u64>(at) != key) break;
    span(i + 1, sets, segment);
    at += 8;
    its += 4;
  }
  return i > from ? i : 0;
}

@inline
function span(end: u32, sets: u32, segment: u32): void {
  let at = <usize>spans << 2;
  if (
    spans && load<u32>(spanSets + at - 4) == sets &&
    (!isThorough || stageOfSegment(load<u32>(stamps + at - 4)) == stageOfSegment(segment))
  ) at -= 4;
  else if (spans == MOST_SPANS) return;
  else {
    spans++;
    store<u32>(spanSets + at, sets);
  }
  store<u32>(ends + at, end);
  store<u32>(stamps + at, segment);
}

/** Bits of those who told that they hold a stretch. */
@inline
export function told(i: u32, word: u32): u32 {
  const set = load<u32>(spanSets + (<usize>i << 2)) >> 16;
  const at = <usize>word << 2;
  return load<u32>(bitsOf(set) + at) & load<u32>(LIVE + at);
}

@inline
export function guessed(i: u32, word: u32): u32 {
  const set = load<u32>(spanSets + (<usize>i << 2)) & 0xffff;
  if (!set) return 0;
  const age = elapsed(load<u32>(stamps + (<usize>i << 2)), time);
  if (age > GUESS_S) return 0;
  const at = <usize>word << 2;
  const all = load<u32>(bitsOf(set) + at) & load<u32>(LIVE + at);
  return age > PROMISE_S ? all & ~load<u32>(EXACT + at) : all;
}

export function endOf(i: u32): u32 {
  return load<u32>(ends + (<usize>i << 2));
}

/** A member holds what it holds of all stretches from the first on. */
function findDepths(): void {
  if (!spans) return;
  const last = words();
  for (let word: u32 = 0; word < last; word++) {
    let alive: u32 = 0xffffffff;
    let before: u32 = 0;
    let exact: u32 = 0;
    let end: u32 = 0;
    for (let i: u32 = 0; i < spans && alive; i++) {
      const now = told(i, word);
      const holds = now | guessed(i, word);
      if (i) exact |= hold(word, alive & ~holds, end) & before;
      alive &= holds;
      before = now;
      end = endOf(i);
    }
    exact |= hold(word, alive, end) & before;
    store<u32>(exacts + (<usize>word << 2), exact);
  }
}

@inline
function hold(word: u32, members: u32, depth: u32): u32 {
  const at = depths + (<usize>word << 7);
  for (let m = members; m; m &= m - 1) store<u32>(at + (<usize>ctz(m) << 2), depth);
  return members;
}
