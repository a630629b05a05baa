/**
 * Sets of members, each kept once: blocks name them by 16-bit ids. What a set contains is never changed, but that members who have left
 * are taken out of all. Everything here is called with the lock held.
 */
import {
  add, bits, EXACT, FACTS, facts, FIRST_FREE, found, foundMask, FREE_SETS, IDLE_SETS, MAX_MEMBERS, MEMBER_WORDS, NEXT, SET_HASH, sets,
  SETS_MADE, SIZE, USES, VERSION, words,
} from "./layout.as";

/** What steps from set to set were made of late: most blocks of a prompt take the same one. [step + 1, the set it leads to] each. */
const STEP_BITS: u32 = 10;
export const STEPS_BYTES: usize = 8 << 10;
let steps: usize = 0;
let seen: u32 = 0;
/** Few ids are left where it is less than this part of all; as many sets must be idle for it to be worth while to look for them. */
const FEW: u32 = 8;

export function openSets(at: usize): void {
  steps = at;
}

@inline
function factsOf(set: u32): usize {
  return facts + <usize>set * FACTS;
}
@inline
export function bitsOf(set: u32): usize {
  return bits + (<usize>set << 7);
}

@inline
export function has(set: u32, member: u32): bool {
  return <bool>((load<u32>(bitsOf(set) + ((<usize>member >> 5) << 2)) >> (member & 31)) & 1);
}

/** Nobody is in it, or no longer. */
@inline
export function isEmpty(set: u32): bool {
  return !set || load<u32>(factsOf(set) + SIZE) == 0;
}

/** The set with a member besides; -1 where no more sets can be kept. */
export function withMember(set: u32, member: u32): i32 {
  return has(set, member) ? <i32>set : step(set, member, true);
}

/** The set without a member; -1 where no more sets can be kept. */
export function without(set: u32, member: u32): i32 {
  return has(set, member) ? step(set, member, false) : <i32>set;
}

/** The set without those that send events; the empty one where it cannot be kept. */
export function withoutSenders(set: u32): u32 {
  let left = <i32>set;
  const end = words();
  for (let word: u32 = 0; word < end && left > 0; word++) {
    const at = <usize>word << 2;
    for (let m = load<u32>(bitsOf(set) + at) & load<u32>(EXACT + at); m && left > 0; m &= m - 1)
      left = without(<u32>left, (word << 5) + <u32>ctz(m));
  }
  return left < 0 ? 0 : <u32>left;
}

/** Somebody in it sends no events. */
export function hasOthers(set: u32): bool {
  const end = words();
  for (let word: u32 = 0; word < end; word++) {
    const at = <usize>word << 2;
    if (load<u32>(bitsOf(set) + at) & ~load<u32>(EXACT + at)) return true;
  }
  return false;
}

/** Blocks will have it. */
@inline
export function use(set: u32, blocks: u32): void {
  if (!set) return;
  const at = factsOf(set) + USES;
  const uses = load<u32>(at);
  if (!uses) add(IDLE_SETS, -1);
  store<u32>(at, uses + blocks);
}

/** Blocks have it no more. */
@inline
export function leave(set: u32, blocks: u32): void {
  if (!set) return;
  const at = factsOf(set) + USES;
  const uses = load<u32>(at) - blocks;
  store<u32>(at, uses);
  if (!uses) add(IDLE_SETS, 1);
}

/** Gives up the sets that no block has where few ids are left. Not while sets are held that no block has yet. */
@inline
export function makeRoom(): void {
  const left = sets - load<u32>(SETS_MADE) + load<u32>(FREE_SETS);
  if (left < sets / FEW && load<u32>(IDLE_SETS) > sets / FEW) giveUp();
}

/** Takes a member out of all sets. */
export function remove(member: u32): void {
  const bit: u32 = 1 << (member & 31);
  const made = load<u32>(SETS_MADE);
  let removed = false;
  for (let set: u32 = 1; set <= made; set++) {
    if (!has(set, member)) continue;
    const at = factsOf(set);
    atomic.and<u32>(bitsOf(set) + ((<usize>member >> 5) << 2), ~bit);
    store<u32>(at + SET_HASH, load<u32>(at + SET_HASH) ^ hashOf(member));
    add(at + SIZE, -1);
    removed = true;
  }
  if (removed) rebuild();
}

function giveUp(): void {
  const made = load<u32>(SETS_MADE);
  let given: u32 = 0;
  for (let set: u32 = 1; set <= made; set++) {
    const at = factsOf(set);
    if (load<u32>(at + USES)) continue;
    store<u32>(at + USES, -1);
    store<u32>(at + NEXT, load<u32>(FIRST_FREE));
    store<u32>(FIRST_FREE, set);
    given++;
  }
  add(FREE_SETS, given);
  store<u32>(IDLE_SETS, 0);
  rebuild();
}

/** Lists and finds sets anew, whatever a thread was about when it died. */
export function repair(): void {
  const made = load<u32>(SETS_MADE);
  let free: u32 = 0;
  let idle: u32 = 0;
  store<u32>(FIRST_FREE, 0);
  for (let set: u32 = 1; set <= made; set++) {
    const at = factsOf(set);
    const uses = load<i32>(at + USES);
    if (!uses) idle++;
    if (uses >= 0) continue;
    store<u32>(at + NEXT, load<u32>(FIRST_FREE));
    store<u32>(FIRST_FREE, set);
    free++;
  }
  store<u32>(FREE_SETS, free);
  store<u32>(IDLE_SETS, idle);
  rebuild();
}

function step(set: u32, member: u32, adds: bool): i32 {
  const version = load<u32>(VERSION);
  if (version != seen) {
    memory.fill(steps, 0, STEPS_BYTES);
    seen = version;
  }
  const name = (set * MAX_MEMBERS + member) * 2 + (adds ? 2 : 1);
  const at = steps + (<usize>((name * 0x9e3779b1) >> (32 - STEP_BITS)) << 3);
  if (load<u32>(at) == name) return load<i32>(at, 4);
  const to = find(set, member, adds);
  if (to >= 0) {
    store<u32>(at, name);
    store<i32>(at, to, 4);
  }
  return to;
}

/** The set that differs from another by one member. */
function find(from: u32, member: u32, adds: bool): i32 {
  const was = factsOf(from);
  const size = load<u32>(was + SIZE) + (adds ? 1 : -1);
  if (!size) return 0;
  const hash = load<u32>(was + SET_HASH) ^ hashOf(member);
  let place = placeOf(hash);
  for (let other = idAt(place); other; other = idAt(place)) {
    if (load<u32>(factsOf(other) + SET_HASH) == hash && differBy(from, other, member)) return <i32>other;
    place = (place + 1) & foundMask;
  }
  const set = takeId();
  if (set < 0) return -1;
  const at = bitsOf(<u32>set);
  const word = at + ((<usize>member >> 5) << 2);
  memory.copy(at, bitsOf(from), MEMBER_WORDS << 2);
  store<u32>(word, load<u32>(word) ^ (1 << (member & 31)));
  const its = factsOf(<u32>set);
  store<u32>(its + SET_HASH, hash);
  store<u32>(its + SIZE, size);
  store<u32>(its + USES, 0);
  add(IDLE_SETS, 1);
  store<u16>(found + (<usize>place << 1), <u16>set);
  return set;
}

function differBy(one: u32, other: u32, member: u32): bool {
  for (let word: u32 = 0; word < MEMBER_WORDS; word++) {
    const at = <usize>word << 2;
    const difference = load<u32>(bitsOf(one) + at) ^ load<u32>(bitsOf(other) + at);
    if (difference != (word == member >> 5 ? 1 << (member & 31) : 0)) return false;
  }
  return true;
}

function takeId(): i32 {
  const free = load<u32>(FIRST_FREE);
  if (free) {
    store<u32>(FIRST_FREE, load<u32>(factsOf(free) + NEXT));
    add(FREE_SETS, -1);
    return <i32>free;
  }
  const set = load<u32>(SETS_MADE) + 1;
  if (set >= sets) return -1;
  store<u32>(SETS_MADE, set);
  return <i32>set;
}

/** Makes sets be found by what they are now. Whoever reads or remembers ids sees by the version that they changed. */
function rebuild(): void {
  atomic.add<u32>(VERSION, 1);
  memory.fill(found, 0, (<usize>foundMask + 1) << 1);
  const made = load<u32>(SETS_MADE);
  for (let set: u32 = 1; set <= made; set++) {
    const at = factsOf(set);
    if (load<i32>(at + USES) < 0 || !load<u32>(at + SIZE)) continue;
    let place = placeOf(load<u32>(at + SET_HASH));
    while (idAt(place)) place = (place + 1) & foundMask;
    store<u16>(found + (<usize>place << 1), <u16>set);
  }
}

@inline
function idAt(place: u32): u32 {
  return load<u16>(found + (<usize>place << 1));
}
@inline
function placeOf(hash: u32): u32 {
  return ((hash * 0x85ebca6b) >> 8) & foundMask;
}

/** A hash for each member. */
function hashOf(member: u32): u32 {
  let hash = (member + 1) * 0x9e3779b1;
  hash = (hash ^ (hash >> 16)) * 0x21f0aaad;
  hash = (hash ^ (hash >> 15)) * 0x735a2d97;
  return hash ^ (hash >> 15);
}
