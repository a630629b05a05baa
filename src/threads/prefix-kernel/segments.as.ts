/**
 * Segments: how blocks are reached one after another, made, changed and thrown out. A key lies in one place only, and as long as
 * it does, that place does not change. Everything here is called with the lock held.
 *
 * One segment is open at a time: while its blocks are changed, its entry says that one has to look into it.
 */
import { add, BLOCKS, countOf, ENTRY_SETS, firstOf, GROUP, keyAt, recordOf, segments, setsAt, SHAPE, STAMP, USED } from "./layout.as";
import { ageOf, evict, giveBack, take } from "./room.as";
import { has, isEmpty, leave, use, withMember, withoutSenders } from "./sets.as";
import { dropEntry, entryOf, findEntry, idOf, MIXED, putEntry, setEntry, setLast } from "./table.as";
import { elapsed, GUESS_S, guessedTime, PROMISE_S, stampOf, usedTime } from "./time.as";

/** The open segment's record, 0 = none; and the block of it at which one is. */
export let record: usize = 0;
export let segment: u32 = 0;
export let block: u32 = 0;
let entry: usize = 0;
/** Blocks of the group before the first, and blocks of the segment. */
let first: u32 = 0;
let count: u32 = 0;
let isTouched = false;

/** To the beginning of a chain, or of a group of it. */
export function goToStart(): void {
  settle();
  record = 0;
}

/** To a block; false where there is none. */
export function goTo(position: u32): bool {
  const at = position / GROUP;
  if (record && segment == at) {
    block = position % GROUP;
    return block < count;
  }
  settle();
  record = 0;
  if (at >= segments) return false;
  const its = recordOf(at);
  const shape = load<u32>(its + SHAPE);
  if (position % GROUP >= countOf(shape)) return false;
  const found = entryOf(at, keyAt(its, 0));
  if (!found) return false;
  open(at, found);
  block = position % GROUP;
  return true;
}

/** To the block that follows with a key, which is made where there is none: without sets, which it must be given. */
export function follow(key: u64, seconds: u32): void {
  if (record) {
    const next = block + 1;
    if (next < count && keyAt(record, next) == key) {
      block = next;
      return;
    }
  }
  const found = findEntry(key);
  if (found) {
    const at = idOf(found);
    settle();
    open(at, found);
    block = 0;
    return;
  }
  if (record) {
    const next = block + 1;
    if (next == count && first + next < GROUP) {
      touch();
      store<u64>(record + (<usize>next << 3), key);
      count = next + 1;
      store<u32>(record + SHAPE, (first << 8) | count);
      block = next;
      return;
    }
    const begin = (first + next) % GROUP;
    settle();
    make(key, begin, seconds);
  } else make(key, 0, seconds);
}

function open(at: u32, found: usize): void {
  segment = at;
  entry = found;
  record = recordOf(at);
  const shape = load<u32>(record + SHAPE);
  first = firstOf(shape);
  count = countOf(shape);
  isTouched = false;
}

function make(key: u64, begin: u32, seconds: u32): void {
  const at = take(seconds);
  record = recordOf(at);
  segment = at;
  first = begin;
  count = 1;
  block = 0;
  isTouched = true;
  store<u64>(record, key);
  store<u32>(record + STAMP, stampOf(usedTime(seconds), guessedTime(seconds)));
  store<u32>(record + SHAPE, (begin << 8) | 1);
  add(USED, 1);
  entry = putEntry(at, key);
}

@inline
function touch(): void {
  if (isTouched) return;
  isTouched = true;
  setEntry(entry, MIXED);
}

@inline
export function setsHere(): u32 {
  return load<u32>(setsAt(record, block));
}

/** Gives other sets to the block at hand; it ends where both are empty. */
export function change(told: u32, guessed: u32): void {
  const at = setsAt(record, block);
  const before = load<u32>(at);
  const after = ((isEmpty(told) ? 0 : told) << 16) | (isEmpty(guessed) ? 0 : guessed);
  if (after == before) return;
  touch();
  use(after >> 16, 1);
  use(after & 0xffff, 1);
  if (!before) add(BLOCKS, 1);
  else if (!after) add(BLOCKS, -1);
  atomic.store<u32>(at, after);
  leave(before >> 16, 1);
  leave(before & 0xffff, 1);
}

/** What was changed is whole. */
export function settle(): void {
  if (!record || !isTouched) return;
  isTouched = false;
  while (count && !load<u32>(setsAt(record, count - 1))) count--;
  if (!count) {
    dropEntry(entry, keyAt(record, 0));
    giveBack(segment);
    record = 0;
    return;
  }
  store<u32>(record + SHAPE, (first << 8) | count);
  setLast(entry, keyAt(record, count - 1));
  const sets = load<u32>(setsAt(record, 0));
  for (let i: u32 = 1; i < count; i++) if (load<u32>(setsAt(record, i)) != sets) return;
  if (sets) setEntry(entry, sets);
}

/** Marks the open segment as used. */
@inline
export function used(seconds: u32): void {
  usedAt(record, seconds);
}
@inline
export function usedAt(its: usize, seconds: u32): void {
  store<u16>(its + STAMP + 2, <u16>usedTime(seconds));
}

/**
 * Of the first `most` blocks of a group that a member will hold them, all at once: where the group is new, or where the segment that it
 * begins with has no others and the same sets for all. Gives how many were done, 0 where they have to be looked at one by one.
 */
export function guessGroup(keys: usize, most: u32, member: u32, seconds: u32): u32 {
  const key = load<u64>(keys);
  const found = findEntry(key);
  if (!found) {
    for (let i: u32 = 1; i < most; i++) if (findEntry(load<u64>(keys + (<usize>i << 3)))) return 0;
    const set = withMember(0, member);
    if (set <= 0) return 0;
    settle();
    make(key, 0, seconds);
    memory.copy(record, keys, <usize>most << 3);
    count = most;
    store<u32>(record + SHAPE, count);
    add(BLOCKS, count);
    setLast(entry, keyAt(record, count - 1));
    changeAll(0, <u32>set);
  } else {
    settle();
    open(idOf(found), found);
    const sets = load<u32>(found + ENTRY_SETS);
    if (sets == MIXED || count > most) return 0;
    for (let i: u32 = 1; i < count; i++) if (keyAt(record, i) != load<u64>(keys + (<usize>i << 3))) return 0;
    used(seconds);
    if (!has(sets >> 16, member)) {
      const age = elapsed(load<u16>(record + STAMP), guessedTime(seconds));
      const set = withMember(age ? believed(sets & 0xffff, age) : sets & 0xffff, member);
      if (set < 0) return 0;
      changeAll(sets, (isEmpty(sets >> 16) ? 0 : sets & 0xffff0000) | <u32>set);
      store<u16>(record + STAMP, <u16>guessedTime(seconds)); // behind the sets, as `renew` does
    }
  }
  block = count - 1;
  return count;
}

/** Gives other sets to all blocks of the open segment, which have the same. */
function changeAll(before: u32, after: u32): void {
  if (after == before) return;
  setEntry(entry, MIXED);
  use(after >> 16, count);
  use(after & 0xffff, count);
  for (let i: u32 = 0; i < count; i++) store<u32>(setsAt(record, i), after);
  leave(before >> 16, count);
  leave(before & 0xffff, count);
  setEntry(entry, after);
  isTouched = false;
}

/** Something of the open segment will be guessed now: what is believed no more of what was guessed before goes. */
export function renew(seconds: u32): void {
  const guessed = <u32>load<u16>(record + STAMP);
  if (guessed != guessedTime(seconds)) {
    forgetOld(seconds);
    store<u16>(record + STAMP, <u16>guessedTime(seconds)); // behind the sets: it is not younger than what they hold
  }
  used(seconds);
}

/** Of all blocks of the open segment only those are guessed further who are still believed. */
export function forgetOld(seconds: u32): void {
  const here = block;
  const age = elapsed(load<u16>(record + STAMP), guessedTime(seconds));
  for (block = 0; block < count; block++) {
    const sets = setsHere();
    if (sets) change(sets >> 16, believed(sets & 0xffff, age));
  }
  block = here;
}

/** Those of a set that are still guessed after so many seconds. */
@inline
export function believed(guessed: u32, age: u32): u32 {
  if (!guessed || age > GUESS_S || isEmpty(guessed)) return 0;
  return age > PROMISE_S ? withoutSenders(guessed) : guessed;
}

/** The sweep's look at a segment: throws it out, or those of it whom nobody believes any more. */
export function tidy(at: u32, seconds: u32, oldest: u32, isFull: bool): void {
  const its = recordOf(at);
  const shape = load<u32>(its + SHAPE);
  if (!shape) return;
  if (isFull && ageOf(its, seconds) >= oldest) return evict(at);
  const found = entryOf(at, keyAt(its, 0));
  if (!found) return evict(at); // a thread died when it made it
  open(at, found);
  // ...or when it changed it
  if (load<u32>(found + ENTRY_SETS) == MIXED) isTouched = true;
  forgetOld(seconds);
  settle();
  record = 0;
}
