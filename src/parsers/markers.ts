/**
 * Markers, and how single-token markers travel.
 *
 * A marker that is one token of the vocabulary is compared by id: the caller says so, and the parser then reads it as a short
 * code that text cannot spell (two high surrogates in a row are never well-formed) instead of its letters. So one scanner over
 * one string serves both, and text that merely looks like such a marker is not one.
 */
const CODE = "\uDBFF\uDBFF";
/** The first character of every code. */
export const CODE_START = 0xdbff;
const CODE_LENGTH = CODE.length + 1;
const FIRST_CODE = 0xe000;

/**
 * What no marker goes on across, and which is no text itself: a thought that was taken out of the text there.
 */
export const BARRIER = CODE + String.fromCharCode(FIRST_CODE - 1);

/** The single-token markers of one parser. */
export class SpecialMarkers {
  private readonly texts: readonly string[];
  private seen = false;

  constructor(texts: Iterable<string>) {
    this.texts = [...texts].sort((a, b) => b.length - a.length);
  }

  /** The code of one special token; undefined when it is not one of ours. */
  code(text: string): string | undefined {
    const k = this.texts.indexOf(text);
    if (k < 0) return undefined;
    this.seen = true;
    return CODE + String.fromCharCode(FIRST_CODE + k);
  }

  /** A marker as the scanner sees it: single tokens in it become codes. */
  written(marker: string): string {
    let result = marker;
    this.texts.forEach((text, k) => {
      if (result.includes(text)) result = result.replaceAll(text, CODE + String.fromCharCode(FIRST_CODE + k));
    });
    return result;
  }

  /** Text for the client: codes become the text of their tokens. */
  plain(text: string): string {
    return this.seen && text.includes(CODE) ? this.split(text).join("") : text;
  }

  /** Cuts text at its codes: text, token text, text, token text, … */
  split(text: string): string[] {
    const parts: string[] = [];
    let from = 0;
    for (let at = text.indexOf(CODE); at >= 0; at = text.indexOf(CODE, from)) {
      const special = this.texts[text.charCodeAt(at + CODE.length) - FIRST_CODE];
      if (special === undefined) break;
      parts.push(text.slice(from, at), special);
      from = at + CODE_LENGTH;
    }
    parts.push(text.slice(from));
    return parts;
  }
}

/** Result of `MarkerSet.match`: no marker here, or not decidable yet. */
export const NO_MARKER = -1;
export const OPEN_MARKER = -2;

/** The markers that count in one state. Earliest wins; at one place the longest. */
export class MarkerSet {
  /** After `find`: where the marker begins, or what may become one, or the end of the text. */
  start = 0;
  /** After `find` and `match`: end of the marker. */
  end = 0;
  private readonly low = new Uint8Array(128);
  private readonly high: number[] = [];

  constructor(readonly markers: readonly string[]) {
    for (const marker of markers) {
      const first = marker.charCodeAt(0);
      if (first < 128) this.low[first] = 1;
      else if (!this.high.includes(first)) this.high.push(first);
    }
  }

  /** Number of the first marker in `text` from `from` on, or -1; see `start` and `end`. `last`: no more text comes. */
  find(text: string, from: number, last: boolean): number {
    const { low, high } = this;
    const length = text.length;
    for (let i = from; i < length; i++) {
      const c = text.charCodeAt(i);
      if (c < 128 ? low[c] === 0 : !high.includes(c)) continue;
      const found = this.match(text, i, last);
      if (found === NO_MARKER) continue;
      this.start = i;
      return found === OPEN_MARKER ? NO_MARKER : found;
    }
    this.start = length;
    return NO_MARKER;
  }

  /** Whether no marker begins anywhere in a text. True may be missed, false never. */
  isFree(text: string): boolean {
    const { low, high } = this;
    for (let i = 0; i < text.length; i++) {
      const c = text.charCodeAt(i);
      if (c < 128 ? low[c] !== 0 : high.length > 0 && high.includes(c)) return false;
    }
    return true;
  }

  /** Number of the marker that stands exactly at `at`; NO_MARKER, or OPEN_MARKER while more text could make (a longer) one. */
  match(text: string, at: number, last: boolean): number {
    const { markers } = this;
    const left = text.length - at;
    let best = NO_MARKER;
    let bestLength = 0;
    let open = false;
    for (let k = 0; k < markers.length; k++) {
      const marker = markers[k]!;
      if (marker.length <= left) {
        if (marker.length > bestLength && text.startsWith(marker, at)) {
          best = k;
          bestLength = marker.length;
        }
      } else if (!last && !open) open = marker.startsWith(left === 0 ? "" : text.slice(at));
    }
    if (open) return OPEN_MARKER;
    this.end = at + bestLength;
    return best;
  }
}
