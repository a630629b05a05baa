/**
 * Finds stop strings in a text that comes in pieces. Holds back only what could still become a stop string, so that no prefix
 * of one is ever given out. Takes time linear in the text, whatever the stops (Knuth, Morris and Pratt).
 */
export class StopMatcher {
  /** Text that was not given out yet: always a proper prefix of some stop string. */
  private held = "";
  /** The stop string that was found. */
  matched: string | undefined;
  /** Per stop: where to go on in it when the next character does not fit, by the length that fits so far. */
  private readonly fallbacks: readonly Uint32Array[];
  /** Per stop: how much of it the text ends with. */
  private readonly lengths: Uint32Array;

  /** @param stops non-empty strings */
  constructor(
    private readonly stops: readonly string[],
    private readonly includeStop: boolean,
  ) {
    this.fallbacks = stops.map(fallbackTable);
    this.lengths = new Uint32Array(stops.length);
  }

  /**
   * Text that is certain now. After `matched` is set, everything more is "". A stop string that ends in a piece which does not
   * `count` is text like any other; it may begin there. The stop that ends first counts, of those that end together the first
   * named.
   */
  push(piece: string, counts = true): string {
    if (this.matched !== undefined || piece === "") return "";
    const text = this.held + piece;
    for (let i = 0; i < piece.length; i++) {
      const found = this.step(piece.charCodeAt(i), counts);
      if (found === undefined) continue;
      const end = this.held.length + i + 1;
      this.matched = found;
      this.held = "";
      return text.slice(0, this.includeStop ? end : end - found.length);
    }
    const certain = text.length - Math.max(...this.lengths);
    this.held = text.slice(certain);
    return text.slice(0, certain);
  }

  /** Takes one character; gives the stop that it completes. */
  private step(unit: number, counts: boolean): string | undefined {
    let found: string | undefined;
    for (let k = 0; k < this.stops.length; k++) {
      const stop = this.stops[k]!;
      const fallback = this.fallbacks[k]!;
      let length = this.lengths[k]!;
      while (length > 0 && stop.charCodeAt(length) !== unit) length = fallback[length]!;
      if (stop.charCodeAt(length) === unit) length++;
      if (length === stop.length) {
        if (counts) found ??= stop;
        length = fallback[length]!;
      }
      this.lengths[k] = length;
    }
    return found;
  }

  /** What was held back, when no more text comes. */
  end(): string {
    const rest = this.held;
    this.held = "";
    this.lengths.fill(0);
    return rest;
  }
}

/** For each length of a prefix, the length of the longest shorter prefix that it ends with. */
function fallbackTable(stop: string): Uint32Array {
  const table = new Uint32Array(stop.length + 1);
  let length = 0;
  for (let i = 1; i < stop.length; i++) {
    while (length > 0 && stop.charCodeAt(i) !== stop.charCodeAt(length)) length = table[length]!;
    if (stop.charCodeAt(i) === stop.charCodeAt(length)) length++;
    table[i + 1] = length;
  }
  return table;
}
