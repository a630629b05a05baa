import { type MarkerSet, NO_MARKER, OPEN_MARKER } from "./markers.ts";

/**
 * A piece of a parser: it runs until the text it has is used up, yields, and goes on when more is there. Whoever yields has
 * taken all that is certain; what stays unread is shorter than a marker.
 */
export type Step<T> = Generator<void, T, void>;

/** The text a parser has not read yet, and a record of what it has read since a place it may want to go back to. */
export class Input {
  text = "";
  at = 0;
  /** No more text comes. */
  ended = false;
  /** Text as the client reads it: codes of special tokens become their text. */
  plain: (text: string) => string = (text) => text;
  private kept: string | undefined;
  private keptFrom = 0;
  /** While the program waits inside plain text: where that goes, and what ends it (undefined: what ends a JSON string). */
  private idle: ((text: string) => void) | undefined;
  private idleUntil: MarkerSet | undefined;

  /** The program is about to wait, all text being read: plain text that comes next may go to `emit` without it. */
  waitIn(emit: (text: string) => void, ends: MarkerSet | undefined): void {
    this.idle = emit;
    this.idleUntil = ends;
  }

  /** Gives a piece of plain text where it goes, if the program would do no more; else it must be fed. */
  passOn(piece: string): boolean {
    const { idle } = this;
    if (idle === undefined || this.kept !== undefined || this.at !== this.text.length) return false;
    if (this.idleUntil === undefined ? !isPlainInString(piece) : !this.idleUntil.isFree(piece)) return false;
    idle(piece);
    return true;
  }

  /** Takes the next text of the model. */
  feed(piece: string): void {
    this.idle = undefined;
    if (this.kept !== undefined) {
      this.kept += this.text.slice(this.keptFrom, this.at);
      this.keptFrom = 0;
    }
    this.text = this.at === this.text.length ? piece : this.text.slice(this.at) + piece;
    this.at = 0;
  }

  /** Keeps from here on what is read; `before` was read already and belongs to it. */
  record(before = ""): void {
    this.kept = before;
    this.keptFrom = this.at;
  }

  get recording(): boolean {
    return this.kept !== undefined;
  }

  /** What was read since `record`, which goes on. */
  get seen(): string {
    return this.kept === undefined ? "" : this.kept + this.text.slice(this.keptFrom, this.at);
  }

  /** All text is read, and no more comes. */
  get isAtEnd(): boolean {
    return this.ended && this.at >= this.text.length;
  }

  /** What was read since `record`, which ends the recording; nothing, if nothing is recorded. */
  recorded(): string {
    if (this.kept === undefined) return "";
    const text = this.kept + this.text.slice(this.keptFrom, this.at);
    this.kept = undefined;
    return text;
  }

  forget(): void {
    this.kept = undefined;
  }

  /** Puts back text that was read last. While a recording runs, it is in that. */
  unread(text: string): void {
    if (this.kept !== undefined) return;
    this.text = text + this.text.slice(this.at);
    this.at = 0;
  }

  /** Goes back to `offset` characters behind the begin of the recording, which ends. */
  rewind(offset: number): void {
    const text = this.recorded();
    this.text = text.slice(offset) + this.text.slice(this.at);
    this.at = 0;
  }
}

const QUOTE = 34;
const BACKSLASH = 92;

/** Whether all of a text can stand in a JSON string as it is. */
function isPlainInString(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === QUOTE || c === BACKSLASH || c < 32) return false;
  }
  return true;
}

export const isSpace = (c: number): boolean => c === 32 || c === 10 || c === 13 || c === 9;

/** Gives out text up to the first marker of the set and reads the marker: its number, or -1 at the end of everything. */
export function* until(input: Input, set: MarkerSet, emit: (text: string) => void): Step<number> {
  for (;;) {
    const hit = set.find(input.text, input.at, input.ended);
    const { at } = input;
    const { start } = set;
    input.at = hit >= 0 ? set.end : start;
    if (start > at) emit(input.text.slice(at, start));
    if (hit >= 0 || input.ended) return hit;
    input.waitIn(emit, set);
    yield;
  }
}

/** Result of `untilCloser`: more text than its limit came before a marker. */
export const TOO_LONG = -2;

/**
 * As `until`, for what ends with one of the markers: where the text ends in a marker, its begin is markup and is dropped. With more
 * text than `limit` before it, a marker stays unread.
 */
export function* untilCloser(
  input: Input,
  set: MarkerSet,
  emit: (text: string) => void,
  limit = Number.POSITIVE_INFINITY,
): Step<number> {
  for (let length = 0; ; ) {
    const { at, text } = input;
    let hit = set.find(text, at, input.ended);
    const isCut = hit < 0 && input.ended;
    if (isCut) hit = set.find(text, at, false);
    const { start } = set;
    length += start - at;
    const isTooLong = length > limit;
    input.at = isTooLong ? start : hit >= 0 ? set.end : isCut ? text.length : start;
    if (start > at) emit(text.slice(at, start));
    if (isTooLong) return TOO_LONG;
    if (hit >= 0 || input.ended) return hit;
    if (limit === Number.POSITIVE_INFINITY) input.waitIn(emit, set);
    yield;
  }
}

/** Whether the text has ended in a begin of a marker of the set that comes next, or before it. */
export const endsInMarker = (input: Input, set: MarkerSet): boolean =>
  input.ended && set.match(input.text, input.at, false) === OPEN_MARKER;

/** Reads the marker of the set that comes next, if one does: its number, or -1. */
export function* take(input: Input, set: MarkerSet): Step<number> {
  const hit = yield* look(input, set);
  if (hit >= 0) input.at = set.end;
  return hit;
}

/** As `take`, but leaves the marker unread. */
export function* look(input: Input, set: MarkerSet): Step<number> {
  for (;;) {
    const hit = set.match(input.text, input.at, input.ended);
    if (hit !== OPEN_MARKER) return hit;
    if (input.ended) return NO_MARKER;
    yield;
  }
}

/** The code of the next character, unread; -1 at the end. */
export function* peek(input: Input): Step<number> {
  while (input.at >= input.text.length) {
    if (input.ended) return -1;
    yield;
  }
  return input.text.charCodeAt(input.at);
}

/** Reads white space; the code of the next character, -1 at the end. */
export function* skipSpace(input: Input): Step<number> {
  for (;;) {
    const c = yield* peek(input);
    if (c < 0 || !isSpace(c)) return c;
    input.at++;
  }
}

/** Reads while `belongs` holds, at most `limit` characters; undefined when the limit or the end was met. */
export function* readWhile(input: Input, belongs: (c: number) => boolean, limit: number): Step<string | undefined> {
  let result = "";
  for (;;) {
    const c = yield* peek(input);
    if (c < 0) return undefined;
    if (!belongs(c)) return result;
    if (result.length >= limit) return undefined;
    result += input.text[input.at++];
  }
}
