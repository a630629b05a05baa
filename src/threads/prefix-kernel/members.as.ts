/** Members, and what else control asks of the index. */
import {
  BLOCKS, CLOCK, countOf, DROPPED, EVICTED, EXACT, FREE_SETS, GROUP, keyAt, LAST_CLAIMED, LIVE, MAX_MEMBERS, memberAt, MEMBERS_END,
  recordOf, segments, setsAt, SETS_MADE, SHAPE, USED, words,
} from "./layout.as";
import { remove } from "./sets.as";

const RANK: usize = 4;
const GENERATION: usize = 8;

/** A number for a worker's slot and a rank; -1 where there are too many. */
export function claim(slot: u32, rank: u32): i32 {
  for (let i: u32 = 1; i <= MAX_MEMBERS; i++) {
    // numbers that were given back last come last, so that nobody still means the one before
    const member = (load<u32>(LAST_CLAIMED) + i) % MAX_MEMBERS;
    const at = memberAt(member);
    if (atomic.load<u32>(at)) continue;
    atomic.store<u32>(at, slot + 1);
    store<u32>(at + RANK, rank);
    store<u32>(LAST_CLAIMED, member);
    atomic.store<u32>(MEMBERS_END, max(member + 1, load<u32>(MEMBERS_END)));
    setBit(EXACT, member, false);
    setBit(LIVE, member, true);
    return <i32>member;
  }
  return -1;
}

export function setExact(member: u32, isExact: bool): void {
  setBit(EXACT, member, isExact);
}

/** Hides a member at once; it is still to be taken out of the sets. False: nobody has the number. */
export function hide(member: u32): bool {
  const at = memberAt(member);
  if (!atomic.load<u32>(at)) return false;
  setBit(LIVE, member, false);
  atomic.add<u32>(at + GENERATION, 1);
  return true;
}

/** Takes a hidden one out of the sets; its number is free, or it is shown again. With the lock held. */
export function forget(member: u32, isReleased: bool): void {
  remove(member);
  if (isReleased) atomic.store<u32>(memberAt(member), 0);
  else setBit(LIVE, member, true);
}

/** Counts how often all that a member held was forgotten. */
export function generation(member: u32): u32 {
  return atomic.load<u32>(memberAt(member) + GENERATION);
}

/** Sets or clears the bit of a member in one of the two bitmaps. */
function setBit(bitmap: usize, member: u32, isSet: bool): void {
  const bit: u32 = 1 << (member & 31);
  const at = bitmap + ((<usize>member >> 5) << 2);
  if (isSet) atomic.or<u32>(at, bit);
  else atomic.and<u32>(at, ~bit);
}

/** Words of a set that can have members. */
export function wordsOfMembers(): u32 {
  return words();
}

export function keyLow(position: u32): u32 {
  return <u32>keyOfBlock(position);
}
/** The key of the block at a position; 0 where there is none. */
export function keyHigh(position: u32): u32 {
  return <u32>(keyOfBlock(position) >> 32);
}

function keyOfBlock(position: u32): u64 {
  const at = position / GROUP;
  const i = position % GROUP;
  if (at >= segments) return 0;
  const record = recordOf(at);
  return i < countOf(load<u32>(record + SHAPE)) && atomic.load<u32>(setsAt(record, i)) ? keyAt(record, i) : 0;
}

export function clock(): u32 {
  return atomic.load<u32>(CLOCK);
}
export function setClock(seconds: u32): void {
  atomic.store<u32>(CLOCK, seconds);
}
export function addDropped(count: u32): void {
  atomic.add<u32>(DROPPED, count);
}
export function dropped(): u32 {
  return atomic.load<u32>(DROPPED);
}
export function evicted(): u32 {
  return atomic.load<u32>(EVICTED);
}
export function blocks(): i32 {
  return max(0, atomic.load<i32>(BLOCKS)); // a thread that dies may leave a count that is wrong by one
}
/** Places of segments in use, of `capacity`. */
export function used(): u32 {
  return <u32>max(0, atomic.load<i32>(USED)) * GROUP;
}
export function setsKept(): u32 {
  return atomic.load<u32>(SETS_MADE) - atomic.load<u32>(FREE_SETS);
}
