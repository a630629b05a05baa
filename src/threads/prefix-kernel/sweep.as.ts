/** Goes round the segments little by little: throws out what is old where memory is short, and what nobody holds. */
import { GROUP, HAND, MADE, recordOf, segments, SHAPE, USED } from "./layout.as";
import { ageOf } from "./room.as";
import { tidy } from "./segments.as";
import { makeRoom } from "./sets.as";
import { lock, LOOKS, unlock } from "./write.as";

/** Segments that are looked at before another may have the lock. */
const SLICE: u32 = 32;
/** Share of the segments above which old ones are thrown out... */
const FULL: f64 = 0.9;
/** ...and the part of them that is old: so much is thrown out in a whole pass. */
const OLD_PART: u32 = 8;
const SAMPLES: u32 = 64;
export const SAMPLES_BYTES: usize = 256;

let samples: usize = 0;
let state: u32 = 1;

export function openSweep(at: usize): void {
  samples = at;
}

/** Looks at segments with so many places. */
export function sweep(places: u32, seconds: u32, owner: u32): void {
  const oldest = isFull() ? ageOfOld(seconds) : 0;
  const made = load<u32>(MADE); // nothing was ever written behind them
  let hand = load<u32>(HAND);
  if (hand >= made) hand = 0;
  for (let left = min(made, (places + GROUP - 1) / GROUP); left; ) {
    if (!lock(owner, LOOKS)) return;
    const end = min(hand + min(left, SLICE), made);
    left -= end - hand;
    for (; hand < end; hand++) {
      makeRoom();
      tidy(hand, seconds, oldest, oldest != 0 && isFull());
    }
    if (hand == made) hand = 0;
    store<u32>(HAND, hand);
    unlock(owner);
  }
}

function isFull(): bool {
  return <f64>load<i32>(USED) > FULL * <f64>segments;
}

/** Age from which a segment is among the oldest, by a sample of them. */
function ageOfOld(seconds: u32): u32 {
  let count: u32 = 0;
  for (let i: u32 = 0; i < SAMPLES * 8 && count < SAMPLES; i++) {
    state = state * 1664525 + 1013904223;
    const record = recordOf(<u32>((<u64>state * <u64>segments) >> 32));
    if (!load<u32>(record + SHAPE)) continue;
    // in order, the oldest first
    const age = ageOf(record, seconds);
    let at = samples + (<usize>count << 2);
    for (; at > samples && load<u32>(at - 4) < age; at -= 4) store<u32>(at, load<u32>(at - 4));
    store<u32>(at, age);
    count++;
  }
  return count ? max(1, load<u32>(samples + (<usize>(count / OLD_PART) << 2))) : 1;
}
