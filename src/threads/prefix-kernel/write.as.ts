/** What threads and control write of chains. Everything but `wasUsed` is called with the lock held, or takes it. */
import { CLOCK, DROPPED, GROUP, isLive, keyAt, LOCK, recordOf, sendsEvents, SHAPE, countOf, setsAt, STAMP } from "./layout.as";
import { ageOf } from "./room.as";
import { findRow, fetchRow, isThere, positionOf, putRow, takeRow, dropRow } from "./rows.as";
import * as segments from "./segments.as";
import { has, makeRoom, repair, withMember, without } from "./sets.as";
import { equal, findEntry, idOf, lineOf, tagOf } from "./table.as";
import { elapsed, GUESS_S, guessedTime, PROMISE_S } from "./time.as";

/** Blocks that are written before another may have the lock: some microseconds. */
const PIECE: u32 = 64;
/** How often control looks at the lock: some tens of microseconds, longer than a thread has it. */
export const LOOKS: u32 = 5000;
/** And for what a cache tells, which was waited for already: what it would leave out is not told again. */
const MORE_LOOKS: u32 = 50000;

/** Nobody asks for it; but without it nothing would be read. */
export let fetched: u32 = 0;

/** Whether the lock was got; looks so many times. */
export function lock(owner: u32, looks: u32): bool {
  for (let i: u32 = 0; i < looks; i++)
    if (!atomic.load<u32>(LOCK) && atomic.cmpxchg<u32>(LOCK, 0, owner) == 0) return true;
  return false;
}

/** Does nothing where another has the lock. */
export function unlock(owner: u32): void {
  segments.goToStart();
  atomic.cmpxchg<u32>(LOCK, owner, 0);
}

/** A thread died. If it had the lock, `owner` has it until what may be half done is mended. */
export function forgetThread(dead: u32, owner: u32): void {
  if (atomic.cmpxchg<u32>(LOCK, dead, owner) != dead) return;
  repair();
  unlock(owner);
}

@inline
function keyOf(keys: usize, i: u32): u64 {
  return load<u64>(keys + (<usize>i << 3));
}

/** Reads where blocks belong, so that all are on their way from memory when they are looked at one by one. */
function fetch(keys: usize, from: u32, to: u32): void {
  let sum: u32 = 0;
  for (let i = from; i < to; i++) sum += load<u32>(lineOf(keyOf(keys, i)));
  fetched = sum;
}

/** The same for whole groups: of those that are there, all but the first, which the chain may leave, need their segment only. */
function fetchGroups(keys: usize, begin: u32, to: u32): void {
  let sum: u32 = 0;
  for (let i = begin + GROUP; i < to; i += GROUP) sum ^= load<u32>(lineOf(keyOf(keys, i)));
  for (let i = begin, end = min(begin + GROUP, to); i < end; i++) sum ^= load<u32>(lineOf(keyOf(keys, i)));
  for (let i = begin + GROUP; i < to; i += GROUP) {
    const key = keyOf(keys, i);
    const line = lineOf(key);
    const m = equal(line, tagOf(key));
    if (m) {
      const record = recordOf(idOf(line + (<usize>ctz(m) << 2)));
      sum ^= load<u32>(record) ^ load<u32>(record + SHAPE);
    } else
      for (let j = i + 1, end = min(i + GROUP, to); j < end; j++) sum ^= load<u32>(lineOf(keyOf(keys, j)));
  }
  fetched = sum;
}

/**
 * A member will hold the blocks of a chain from one to another, as it was sent them; of the group that these begin in, it holds those
 * before. Gives the number of blocks that were not written, for want of sets.
 */
export function guess(keys: usize, from: u32, to: u32, member: u32, seconds: u32): u32 {
  const begin = from - (from % GROUP);
  let dropped: u32 = 0;
  fetchGroups(keys, begin, to);
  segments.goToStart();
  for (let i = begin; i < to; i++) {
    if (i >= from && i % GROUP == 0) {
      makeRoom();
      const done = segments.guessGroup(keys + (<usize>i << 3), min(GROUP, to - i), member, seconds);
      if (done) {
        i += done - 1;
        continue;
      }
    }
    segments.follow(keyOf(keys, i), seconds);
    makeRoom();
    const sets = segments.setsHere();
    if (i < from && sets) continue;
    if (has(sets >> 16, member)) {
      segments.used(seconds);
      continue;
    }
    segments.renew(seconds);
    const now = segments.setsHere();
    const guessed = withMember(now & 0xffff, member);
    if (guessed < 0) dropped++;
    else segments.change(now >> 16, <u32>guessed);
  }
  segments.settle();
  return dropped;
}

/** Whether the last blocks of a chain's beginning were used less than so many units ago. */
export function wasUsed(keys: usize, to: u32, seconds: u32, units: u32): bool {
  const entry = findEntry(keyOf(keys, to - 1 - ((to - 1) % GROUP)));
  return entry != 0 && ageOf(recordOf(idOf(entry)), seconds) < units;
}

/** A chain's beginning was used by a member that held it: it is not old, and what was guessed of it holds on. */
export function mark(keys: usize, to: u32, member: u32, seconds: u32): void {
  const time = guessedTime(seconds);
  for (let i: u32 = 0; i < to; ) {
    const entry = findEntry(keyOf(keys, i));
    if (!entry) return;
    const record = recordOf(idOf(entry));
    const count = min(countOf(load<u32>(record + SHAPE)), to - i);
    let same: u32 = 1;
    while (same < count && keyAt(record, same) == keyOf(keys, i + same)) same++;
    segments.usedAt(record, seconds);
    if (!sendsEvents(member) && holdsOn(record, member, elapsed(load<u16>(record + STAMP), time)))
      store<u16>(record + STAMP, <u16>time);
    i += same;
  }
}

/** All that was guessed of a segment's blocks is believed still, and some of it of a member. */
function holdsOn(record: usize, member: u32, age: u32): bool {
  let isGuessed = false;
  let before: u32 = 0;
  for (let i: u32 = 0; i < GROUP; i++) {
    const guessed = load<u32>(setsAt(record, i)) & 0xffff;
    if (!guessed || guessed == before) continue;
    before = guessed;
    if (segments.believed(guessed, age) != guessed) return false;
    if (has(guessed, member)) isGuessed = true;
  }
  return isGuessed;
}

/**
 * A member told that it holds blocks, behind the one at a position (-1: from a chain's beginning on). They are found by the hashes that its
 * cache has for them, where that has a number. Gives the position of the last; -1 where not all could be written, for want of
 * memory or of the lock, or as the one before is not there any more.
 */
export function tell(keys: usize, count: u32, parent: i32, member: u32, owner: u32, cache: u32, hashes: usize): i32 {
  const seconds = load<u32>(CLOCK);
  let position = parent;
  for (let from: u32 = 0; from < count; from += PIECE) {
    const to = min(count, from + PIECE);
    fetch(keys, from, to);
    if (cache) fetchRows(hashes, from, to, cache);
    let i = from;
    if (isLive(member) && lock(owner, MORE_LOOKS)) {
      segments.goToStart();
      if (position < 0 || segments.goTo(<u32>position))
        for (; i < to; i++) {
          position = tellOne(keyOf(keys, i), member, seconds);
          if (position < 0) break;
          const hash = hashes + (<usize>i << 3);
          // rather unknown than never forgotten
          if (cache && !putRow(cache, load<u32>(hash), load<u32>(hash, 4), <u32>position, keyOf(keys, i))) untellHere(member);
        }
      unlock(owner);
    }
    if (i == to) continue;
    atomic.add<u32>(DROPPED, count - i);
    return -1;
  }
  return position;
}

function tellOne(key: u64, member: u32, seconds: u32): i32 {
  segments.follow(key, seconds);
  makeRoom();
  const sets = segments.setsHere();
  const told = withMember(sets >> 16, member);
  if (told < 0) return -1;
  const guessed = without(sets & 0xffff, member);
  segments.change(<u32>told, guessed < 0 ? 0 : <u32>guessed);
  segments.used(seconds);
  return <i32>(segments.segment * GROUP + segments.block);
}

function untellHere(member: u32): void {
  makeRoom();
  const sets = segments.setsHere();
  const told = without(sets >> 16, member);
  segments.change(told < 0 ? 0 : <u32>told, sets & 0xffff);
}

/**
 * A cache told that it has removed blocks that it knows by these hashes. Bytes at `known` say which of them it had told of. Gives their
 * number.
 */
export function remove(hashes: usize, count: u32, member: u32, owner: u32, cache: u32, known: usize): u32 {
  let removed: u32 = 0;
  for (let from: u32 = 0; from < count; from += PIECE) {
    const to = min(count, from + PIECE);
    fetchRows(hashes, from, to, cache);
    fetchRecords(hashes, from, to, cache);
    const isLocked = lock(owner, MORE_LOOKS);
    for (let i = from; i < to; i++) {
      const position = isLocked ? takeHash(hashes + (<usize>i << 3), cache) : <i32>UNKNOWN;
      if (position >= 0 && segments.goTo(<u32>position)) untellHere(member);
      store<u8>(known + <usize>i, position == UNKNOWN ? 0 : 1);
      if (position != UNKNOWN) removed++;
    }
    if (isLocked) unlock(owner);
  }
  return removed;
}

const UNKNOWN: i32 = -1;
const HAS_MORE: i32 = -2;

/** Position of the block of which a cache has no copy any more. */
function takeHash(hash: usize, cache: u32): i32 {
  const row = findRow(cache, load<u32>(hash), load<u32>(hash, 4));
  if (!row) return UNKNOWN;
  if (!isThere(row)) {
    dropRow(row); // the index has thrown it out
    return UNKNOWN;
  }
  const position = <i32>positionOf(row);
  return takeRow(row) ? position : HAS_MORE;
}

/** Position of the block that a cache knows by a hash; -1: it is not in the index any more. */
export function positionOfHash(cache: u32, low: u32, high: u32): i32 {
  const row = findRow(cache, low, high);
  if (!row) return -1;
  if (isThere(row)) return <i32>positionOf(row);
  dropRow(row);
  return -1;
}

function fetchRows(hashes: usize, from: u32, to: u32, cache: u32): void {
  let sum: u32 = 0;
  for (let i = from; i < to; i++) sum ^= fetchRow(cache, load<u32>(hashes + (<usize>i << 3)), load<u32>(hashes + (<usize>i << 3), 4));
  fetched = sum;
}

function fetchRecords(hashes: usize, from: u32, to: u32, cache: u32): void {
  let sum: u32 = 0;
  for (let i = from; i < to; i++) {
    const row = findRow(cache, load<u32>(hashes + (<usize>i << 3)), load<u32>(hashes + (<usize>i << 3), 4));
    if (row) sum ^= load<u32>(recordOf(positionOf(row) / GROUP) + SHAPE);
  }
  fetched = sum;
}
