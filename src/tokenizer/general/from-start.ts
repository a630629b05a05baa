/**
 * Where the characters of a changed text come from, as the Rust library counts it. It does not follow characters but counts: a new
 * character stands for the next old one (change 0), for it and for n more (change -n), or is an addition to the one before (change 1).
 */
export type Change = [units: number, change: number];

/** How many UTF-16 units of the new text come from the first `from` characters of the old one. */
export function unitsFromStart(changes: Iterable<Change>, from: number): number {
  let at = 0; // characters of the old text that are accounted for
  let units = 0;
  for (const [length, change] of changes) {
    if ((change > 0 ? at - 1 : at) >= from) break;
    if (change <= 0) at += 1 - change;
    units += length;
  }
  return units;
}
