/** The filter `wordwrap`: Python's `textwrap.wrap` for each line, by code point. */
import { ChatTemplateError } from "../errors.ts";
import { wantText } from "./calls.ts";
import { charge, chargeScan } from "./limits.ts";
import { asIndex } from "./numbers.ts";
import { textLength } from "./sequences.ts";
import { splitLines, strip } from "./strings.ts";
import { truthy, type Value } from "./values.ts";

const SPACE = "[\\t\\n\\v\\f\\r ]";
const WORD = "[\\p{L}\\p{N}_]";
const LETTER = "[\\p{L}_]";
const PUNCTUATED = "[\\p{L}\\p{N}_!\"'&.,?]";
/** Whitespace, a dash between words, or a word, which may end behind a hyphen. */
const CHUNK = new RegExp(
  `${SPACE}+|(?<=${PUNCTUATED})-{2,}(?=${WORD})|[^\\t\\n\\v\\f\\r ]+?(?:-(?:(?<=${LETTER}{2}-)|(?<=${LETTER}-${PUNCTUATED}-))(?=${LETTER}-?${LETTER})|(?=${SPACE}|$)|(?<=${PUNCTUATED})(?=-{2,}${WORD}))`,
  "gu",
);
const WORDS = new RegExp(`${SPACE}+|[^\\t\\n\\v\\f\\r ]+`, "g");

interface Options {
  readonly width: number;
  readonly breakLong: boolean;
  readonly hyphens: boolean;
}

export function wordwrap(value: Value, width: Value, breakLong: Value, wrapString: Value, hyphens: Value): Value {
  const between = wrapString === null ? "\n" : wantText(wrapString);
  const options = { width: asIndex(width), breakLong: truthy(breakLong), hyphens: truthy(hyphens) };
  const wrapped = splitLines(wantText(value, "wordwrap"), false).map((line) => wrap(line, options).join(between));
  return wrapped.join(between);
}

function wrap(text: string, { width, breakLong, hyphens }: Options): string[] {
  if (width <= 0) throw new ChatTemplateError(`invalid width ${width} (must be > 0)`);
  chargeScan(text.length * 4);
  const chunks = (text.match(hyphens ? CHUNK : WORDS) ?? []).reverse();
  const blank = (chunk: string | undefined): boolean => chunk !== undefined && strip(chunk, undefined) === "";
  const lines: string[] = [];
  while (chunks.length > 0) {
    charge(2);
    const line: string[] = [];
    let length = 0;
    if (lines.length > 0 && blank(chunks.at(-1))) chunks.pop();
    for (let chunk = chunks.at(-1); chunk !== undefined; chunk = chunks.at(-1)) {
      const size = textLength(chunk);
      if (length + size > width) break;
      line.push(chunk);
      chunks.pop();
      length += size;
    }
    const long = chunks.at(-1);
    if (long !== undefined && textLength(long) > width) breakWord(chunks, line, width - length, breakLong, hyphens);
    if (blank(line.at(-1))) line.pop();
    if (line.length > 0) lines.push(line.join(""));
  }
  return lines;
}

/** Puts as much of a word that is longer than a line on this one as fits. */
function breakWord(chunks: string[], line: string[], room: number, breakLong: boolean, hyphens: boolean): void {
  const word = Array.from(chunks.pop() ?? "");
  charge(word.length);
  if (breakLong) {
    let end = room;
    if (hyphens && word.length > room) {
      const hyphen = word.slice(0, room).lastIndexOf("-");
      if (hyphen > 0 && word.slice(0, hyphen).some((c) => c !== "-")) end = hyphen + 1;
    }
    line.push(word.slice(0, end).join(""));
    chunks.push(word.slice(end).join(""));
  } else if (line.length === 0) line.push(word.join(""));
  else chunks.push(word.join(""));
}
