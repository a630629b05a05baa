/** A stop string that the text has in full. */
interface Match {
  readonly stop: string;
  /** Where it begins, in UTF-16 units from the beginning of all text. */
  readonly start: number;
}

/**
 * Finds stop strings in a text that comes in pieces; how it is cut makes no difference. The match that starts first wins, of
 * those that start together the longest; the order of the stops says nothing. Holds back only what depends on text to come.
 * Takes time linear in the text, whatever the stops (Knuth, Morris and Pratt).
 */
export class StopMatcher {
  /** The stop string that won. */
  matched: string | undefined;
  /** The best match so far, while one that starts earlier, or a longer one from the same start, may still become whole. */
  private best: Match | undefined;
  /** Text that was not given out yet. */
  private held = "";
  /** UTF-16 units that came. */
  private seen = 0;
  private readonly stops: readonly string[];
  /** Per stop: where to go on in it when the next character does not fit, by the length that fits so far. */
  private readonly fallbacks: readonly Uint32Array[];
  /** Per stop: how much of it the text ends with, short of all. The most of it: so a match to come starts no earlier. */
  private readonly lengths: Uint32Array;
  /** The greatest of `lengths`. */
  private longest = 0;

  /**
   * @param stops empty ones are ignored
   * @param includeStop the text ends behind the stop string, not before it
   */
  constructor(
    stops: readonly string[],
    private readonly includeStop: boolean,
  ) {
    this.stops = stops.filter((stop) => stop !== "");
    this.fallbacks = this.stops.map(fallbackTable);
    this.lengths = new Uint32Array(this.stops.length);
  }

  /**
   * Text that is certain now. After `matched` is set, everything more is "". A stop string that ends in a piece which does not
   * `count` is text like any other; it may begin there.
   */
  push(piece: string, counts = true): string {
    if (this.matched !== undefined || piece === "") return "";
    const text = this.held + piece;
    const offset = this.seen - this.held.length;
    for (let i = 0; i < piece.length; i++) {
      this.step(piece.charCodeAt(i), counts);
      if (this.best !== undefined && this.seen - this.longest > this.best.start) return this.settle(text, offset);
    }
    const certain = this.certain() - offset;
    this.held = text.slice(certain);
    return text.slice(0, certain);
  }

  /** What was held back, when no more text comes behind it: the best match so far is the match then. */
  end(): string {
    if (this.best !== undefined) return this.settle(this.held, this.seen - this.held.length);
    const rest = this.held;
    this.held = "";
    this.lengths.fill(0);
    this.longest = 0;
    return rest;
  }

  /** Takes one character. */
  private step(unit: number, counts: boolean): void {
    this.seen++;
    this.longest = 0;
    for (let k = 0; k < this.stops.length; k++) {
      const stop = this.stops[k]!;
      const fallback = this.fallbacks[k]!;
      let length = this.lengths[k]!;
      while (length > 0 && stop.charCodeAt(length) !== unit) length = fallback[length]!;
      if (stop.charCodeAt(length) === unit) length++;
      if (length === stop.length) {
        if (counts) this.consider(stop, this.seen - length);
        length = fallback[length]!;
      }
      this.lengths[k] = length;
      if (length > this.longest) this.longest = length;
    }
  }

  private consider(stop: string, start: number): void {
    // One that starts with the best so far ends behind it, so it is the longer one.
    if (this.best === undefined || start <= this.best.start) this.best = { stop, start };
  }

  /** Up to where the text is sure to be given out: any better match ends behind the best so far. */
  private certain(): number {
    if (!this.includeStop) return this.seen - this.longest;
    return this.best === undefined ? this.seen : this.best.start + this.best.stop.length;
  }

  /** The best match is the match. `text` begins at `offset`. */
  private settle(text: string, offset: number): string {
    const { stop, start } = this.best!;
    this.best = undefined;
    this.matched = stop;
    this.held = "";
    return text.slice(0, (this.includeStop ? start + stop.length : start) - offset);
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
