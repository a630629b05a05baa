/** Room for segments: taken, given back, and made by throwing out what is old. Everything here is called with the lock held. */
import { add, BLOCKS, EVICTED, FREE, GROUP, keyAt, MADE, OLD_HAND, recordOf, segments, setsAt, SHAPE, STAMP, USED } from "./layout.as";
import { hasOthers, isEmpty, leave } from "./sets.as";
import { dropEntry, entryOf } from "./table.as";
import { elapsed, GUESS_S, guessedTime, PROMISE_S, usedTime } from "./time.as";

/** Segments that are looked at where none is free: the oldest of them gives way. */
const LOOKS: u32 = 16;

/** Units of use since a segment was used. */
@inline
export function ageOf(its: usize, seconds: u32): u32 {
  return elapsed(load<u16>(its + STAMP + 2), usedTime(seconds));
}

/** Throws a segment out that is not open. */
export function evict(at: u32): void {
  const its = recordOf(at);
  const key = keyAt(its, 0);
  const found = entryOf(at, key);
  if (found) dropEntry(found, key);
  let gone: u32 = 0;
  for (let i: u32 = 0; i < GROUP; i++) {
    const sets = load<u32>(setsAt(its, i));
    if (!sets) continue;
    atomic.store<u32>(setsAt(its, i), 0);
    leave(sets >> 16, 1);
    leave(sets & 0xffff, 1);
    gone++;
  }
  add(BLOCKS, -gone);
  add(EVICTED, gone);
  giveBack(at);
}

/** A segment without entry and sets is free. */
export function giveBack(at: u32): void {
  store<u32>(recordOf(at) + SHAPE, 0);
  add(USED, -1);
  store<u32>(recordOf(at), load<u32>(FREE));
  store<u32>(FREE, at + 1);
}

/** A free segment. */
export function take(seconds: u32): u32 {
  const free = load<u32>(FREE);
  if (free) {
    store<u32>(FREE, load<u32>(recordOf(free - 1)));
    return free - 1;
  }
  const made = load<u32>(MADE);
  if (made < segments) {
    store<u32>(MADE, made + 1);
    return made;
  }
  let at = load<u32>(OLD_HAND);
  let oldest: u32 = 0;
  let most: i32 = -1;
  for (let i: u32 = 0; i < LOOKS; i++, at++) {
    if (at >= segments) at = 0;
    const its = recordOf(at);
    if (!load<u32>(its + SHAPE)) return at; // a thread died when it took it, or gave it back
    const age = isDead(its, seconds) ? 0x10000 : <i32>ageOf(its, seconds);
    if (age <= most) continue;
    most = age;
    oldest = at;
  }
  store<u32>(OLD_HAND, at);
  evict(oldest);
  return take(seconds);
}

function isDead(its: usize, seconds: u32): bool {
  const age = elapsed(load<u16>(its + STAMP), guessedTime(seconds));
  let before: u32 = 0;
  for (let i: u32 = 0; i < GROUP; i++) {
    const sets = load<u32>(setsAt(its, i));
    if (sets == before) continue;
    before = sets;
    if (!isEmpty(sets >> 16)) return false;
    const guessed = sets & 0xffff;
    if (age <= GUESS_S && !isEmpty(guessed) && (age <= PROMISE_S || hasOthers(guessed))) return false;
  }
  return true;
}
