/** What Python takes for whitespace: `str.isspace`, and `\s` of its regular expressions. Neither U+FEFF nor U+200B. */

const RANGES = [
  [0x09, 0x0d],
  [0x1c, 0x20],
  [0x85, 0x85],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
] as const;

const hex = (code: number): string => `\\u${code.toString(16).padStart(4, "0")}`;

/** Inside of a character class of a RegExp. */
export const SPACE_CLASS = RANGES.map(([from, to]) => `${hex(from)}-${hex(to)}`).join("");

const codes = new Set(RANGES.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, i) => from + i)));
const NOT_SPACE = new RegExp(`[^${SPACE_CLASS}]`);
const OUTER = new RegExp(`^[${SPACE_CLASS}]+|[${SPACE_CLASS}]+$`, "g");

export const isSpaceCode = (code: number): boolean =>
  code === 32 || (code < 33 || code > 132 ? codes.has(code) : false);
export const isSpace = (text: string): boolean => text !== "" && !NOT_SPACE.test(text);
/** A short text without outer whitespace. */
export const trimmed = (text: string): string => text.replace(OUTER, "");
