/**
 * Finds stop strings in a text that comes in pieces. Holds back only what could still become a stop string, so that no prefix
 * of one is ever given out.
 */
export class StopMatcher {
  /** Text that was not given out yet: always a proper prefix of some stop string. */
  private held = "";
  /** The stop string that was found. */
  matched: string | undefined;

  /** @param stops non-empty strings */
  constructor(
    private readonly stops: readonly string[],
    private readonly includeStop: boolean,
  ) {}

  /**
   * Text that is certain now. After `matched` is set, everything more is "". A stop string that ends in a piece which does not
   * `count` is text like any other; it may begin there.
   */
  push(piece: string, counts = true): string {
    if (this.matched !== undefined || piece === "") return "";
    const text = this.held + piece;
    // A match that ends first wins, as if the text had come character by character; of those that end together, the first named.
    let end = Number.POSITIVE_INFINITY;
    let found: string | undefined;
    for (const stop of counts ? this.stops : []) {
      // What is held ended before this piece: a match must end in the piece.
      const at = text.indexOf(stop, Math.max(0, this.held.length - stop.length + 1));
      if (at < 0) continue;
      if (at + stop.length < end) {
        end = at + stop.length;
        found = stop;
      }
    }
    if (found !== undefined) {
      this.matched = found;
      this.held = "";
      return text.slice(0, this.includeStop ? end : end - found.length);
    }
    const keep = this.partial(text);
    this.held = keep === 0 ? "" : text.slice(text.length - keep);
    return keep === 0 ? text : text.slice(0, text.length - keep);
  }

  /** What was held back, when no more text comes. */
  end(): string {
    const rest = this.held;
    this.held = "";
    return rest;
  }

  /** Length of the longest end of the text that begins a stop string. */
  private partial(text: string): number {
    let longest = 0;
    for (const stop of this.stops) {
      for (let n = Math.min(stop.length - 1, text.length); n > longest; n--) {
        if (text.endsWith(stop.slice(0, n))) {
          longest = n;
          break;
        }
      }
    }
    return longest;
  }
}
