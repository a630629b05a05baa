/** Cutting texts in pieces, as the Rust library's SplitDelimiterBehavior has it. */

export const BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"] as const;
export type Behavior = (typeof BEHAVIORS)[number];

/**
 * What remains of a text of `length` units that is cut at `matches` (flat pairs, in order): flat pairs again. `invert`: what is
 * between the matches is what counts as matched.
 */
export function cut(length: number, matches: readonly number[], behavior: Behavior, invert: boolean): number[] {
  const places: number[] = [];
  const matched: boolean[] = [];
  let at = 0;
  for (let i = 0; i < matches.length; i += 2) {
    if (matches[i]! > at) {
      places.push(at, matches[i]!);
      matched.push(invert);
    }
    places.push(matches[i]!, matches[i + 1]!);
    matched.push(!invert);
    at = matches[i + 1]!;
  }
  if (at < length) {
    places.push(at, length);
    matched.push(invert);
  }
  switch (behavior) {
    case "Isolated":
      return places;
    case "Removed":
      return places.filter((_, i) => !matched[i >> 1]);
    case "Contiguous":
      return joined(places, (i) => matched[i] === (i > 0 && matched[i - 1]));
    case "MergedWithPrevious":
      return joined(places, (i) => matched[i]! && !(i > 0 && matched[i - 1]));
    case "MergedWithNext":
      return joined(places, (i) => i > 0 && matched[i - 1]! && !(i < matched.length && matched[i]));
  }
}

/** Joins each place `i` to the one before it where `joins(i)`. */
function joined(places: readonly number[], joins: (i: number) => boolean): number[] {
  const out: number[] = [];
  for (let i = 0; i * 2 < places.length; i++) {
    if (out.length > 0 && joins(i)) out[out.length - 1] = places[i * 2 + 1]!;
    else out.push(places[i * 2]!, places[i * 2 + 1]!);
  }
  return out;
}
