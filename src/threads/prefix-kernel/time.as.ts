/** Times of segments have 16 bits. The unit of use is four seconds: three days; that of guesses is one: 18 hours. */

/** Seconds for which a guess is believed, of members that send events... */
export const PROMISE_S: u32 = 10;
/** ...and of others. */
export const GUESS_S: u32 = 1800;
/** Clocks of threads may be a little apart. */
const MOST_SKEW: u32 = 64;

@inline
export function usedTime(seconds: u32): u32 {
  return (seconds >> 2) & 0xffff;
}
@inline
export function guessedTime(seconds: u32): u32 {
  return seconds & 0xffff;
}
@inline
export function stampOf(used: u32, guessed: u32): u32 {
  return (used << 16) | guessed;
}
/** Units from a time to another; 0 where the other is a little earlier. */
@inline
export function elapsed(from: u32, to: u32): u32 {
  const units = (to - from) & 0xffff;
  return units > 0xffff - MOST_SKEW ? 0 : units;
}
