/** Operations on Python strings, by code point. JavaScript's case tables may know characters that an older Python does not. */
import { ChatTemplateError } from "../errors.ts";
import { charge, chargeItems, chargeScan, chargeText, MAX_ITEMS } from "./limits.ts";
import { codePoints } from "./sequences.ts";
import { isSpace, isSpaceCode, SPACE_CLASS } from "./whitespace.ts";

const WORDS = new RegExp(`[^${SPACE_CLASS}]+`, "g");

export type Side = "left" | "right" | "both";

/** Without its outer whitespace, or without outer characters that are in `characters`. */
export function strip(text: string, characters: string | undefined, side: Side = "both"): string {
  if (characters !== undefined && /[\ud800-\udfff]/.test(characters)) return stripWide(text, characters, side);
  let from = 0;
  let to = text.length;
  const drops = (at: number): boolean =>
    characters === undefined ? isSpaceCode(text.charCodeAt(at)) : characters.includes(text[at] as string);
  if (side !== "right") while (from < to && drops(from)) from++;
  if (side !== "left") while (to > from && drops(to - 1)) to--;
  chargeScan(text.length - (to - from));
  return text.slice(from, to);
}

function stripWide(text: string, characters: string, side: Side): string {
  const set = new Set(codePoints(characters));
  const points = codePoints(text);
  let from = 0;
  let to = points.length;
  if (side !== "right") while (from < to && set.has(points[from] as string)) from++;
  if (side !== "left") while (to > from && set.has(points[to - 1] as string)) to--;
  return points.slice(from, to).join("");
}

/** `split(sep, maxsplit)`; undefined: at runs of whitespace. */
export function split(text: string, separator: string | undefined, limit: number): string[] {
  charge(text.length >> 6);
  if (separator === undefined) return splitWords(text, limit);
  if (separator === "") throw new ChatTemplateError("empty separator");
  if (limit < 0) {
    const parts = text.split(separator, MAX_ITEMS + 1);
    chargeItems(parts.length);
    return parts;
  }
  const parts: string[] = [];
  let from = 0;
  for (let at = text.indexOf(separator); at >= 0 && parts.length < limit; at = text.indexOf(separator, from)) {
    parts.push(text.slice(from, at));
    from = at + separator.length;
  }
  chargeItems(parts.length);
  parts.push(text.slice(from));
  return parts;
}

function splitWords(text: string, limit: number): string[] {
  const parts: string[] = [];
  for (const match of text.matchAll(WORDS)) {
    charge(6);
    if (limit >= 0 && parts.length >= limit) {
      parts.push(strip(text.slice(match.index), undefined, "left"));
      break;
    }
    parts.push(match[0]);
  }
  if (limit >= 0 && parts.length > limit) return parts;
  return parts;
}

/** `rsplit(sep, maxsplit)`. */
export function rsplit(text: string, separator: string | undefined, limit: number): string[] {
  if (limit < 0) return split(text, separator, limit);
  charge(text.length >> 6);
  const parts: string[] = [];
  let to = text.length;
  if (separator === "") throw new ChatTemplateError("empty separator");
  if (separator !== undefined) {
    for (let at = text.lastIndexOf(separator); at >= 0 && parts.length < limit; ) {
      parts.push(text.slice(at + separator.length, to));
      to = at;
      at = at < separator.length ? -1 : text.lastIndexOf(separator, at - separator.length);
    }
    parts.push(text.slice(0, to));
  } else {
    let rest = strip(text, undefined, "right");
    while (rest !== "" && parts.length < limit) {
      let at = rest.length;
      while (at > 0 && !isSpaceCode(rest.charCodeAt(at - 1))) at--;
      parts.push(rest.slice(at));
      rest = strip(rest.slice(0, at), undefined, "right");
    }
    if (rest !== "") parts.push(rest);
  }
  chargeItems(parts.length);
  return parts.reverse();
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: some of them end lines
const LINES = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/g;

export function splitLines(text: string, keepEnds: boolean): string[] {
  charge(text.length >> 6);
  const lines: string[] = [];
  let from = 0;
  for (const match of text.matchAll(LINES)) {
    charge(6);
    const end = match.index + match[0].length;
    lines.push(text.slice(from, keepEnds ? end : match.index));
    from = end;
  }
  if (from < text.length) lines.push(text.slice(from));
  return lines;
}

/** `replace(old, new, count)`; a negative count: all. */
export function replace(text: string, from: string, to: string, count: number): string {
  charge(text.length >> 6);
  if (count === 0) return text;
  const parts = from === "" ? ["", ...codePoints(text), ""] : split(text, from, count);
  const joins = Math.min(parts.length - 1, count < 0 ? Infinity : count);
  chargeText(text.length + joins * to.length);
  if (from !== "" || joins === parts.length - 1) return parts.join(to);
  return parts.slice(0, joins).join(to) + to + parts.slice(joins).join("");
}

export function repeat(text: string, times: number): string {
  if (times <= 0 || text === "") return "";
  chargeText(text.length * times);
  return text.repeat(times);
}

/** Non-overlapping occurrences. */
export function countOf(text: string, part: string): number {
  chargeScan(text.length);
  if (part === "") return codePoints(text).length + 1;
  let count = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) count++;
  return count;
}

const TITLE: ReadonlyMap<string, string> = new Map([
  ...(["\u01c4\u01c5\u01c6", "\u01c7\u01c8\u01c9", "\u01ca\u01cb\u01cc", "\u01f1\u01f2\u01f3"] as const).flatMap(
    (three) => Array.from(three, (c) => [c, three[1] as string] as const),
  ),
]);

/** A first letter in title case: `ß` gives `Ss`. */
function titleLetter(letter: string): string {
  const known = TITLE.get(letter);
  if (known !== undefined) return known;
  if (letter >= "\u10d0" && letter <= "\u10ff") return letter;
  const [first = "", ...rest] = letter.toUpperCase();
  return first + rest.join("").toLowerCase();
}

export function capitalize(text: string): string {
  const [first = ""] = text;
  return titleLetter(first) + lowerRest(text.slice(first.length));
}

/** Lower case of what follows a letter: a final sigma is one. */
const lowerRest = (text: string): string => `a${text}`.toLowerCase().slice(1);

/** Runs of cased characters begin in upper case: `It'S`. */
export function title(text: string): string {
  chargeScan(text.length);
  return text.replace(/\p{Cased}+/gu, (run) => {
    charge(8);
    const [first = ""] = run;
    return titleLetter(first) + lowerRest(run.slice(first.length));
  });
}

export const swapCase = (text: string): string =>
  text.replace(/\p{Cased}/gu, (c) => (/\p{Uppercase}/u.test(c) ? c.toLowerCase() : c.toUpperCase()));

export const caseFold = (text: string): string =>
  text
    .replace(/[^\0-\x7f]/gu, (c) => (c === "ı" ? c : c.toUpperCase().toLowerCase()))
    .toLowerCase()
    .replaceAll("ς", "σ");

const DIGIT =
  "\\u00b2-\\u00b3\\u00b9\\u1369-\\u1371\\u19da\\u2070\\u2074-\\u2079\\u2080-\\u2089\\u2460-\\u2468\\u2474-\\u247c\\u2488-\\u2490\\u24ea\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e\\u2780-\\u2788\\u278a-\\u2792\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}";
/** Ideographs with a numeric value. */
const NUMERAL =
  "\\u3405\\u3483\\u382a\\u3b4d\\u4e00\\u4e03\\u4e07\\u4e09\\u4e5d\\u4e8c\\u4e94\\u4e96\\u4ebf-\\u4ec0\\u4edf\\u4ee8\\u4f0d\\u4f70\\u5104\\u5146\\u5169\\u516b\\u516d\\u5341\\u5343-\\u5345\\u534c\\u53c1-\\u53c4\\u56db\\u58f1\\u58f9\\u5e7a\\u5efe-\\u5eff\\u5f0c-\\u5f0e\\u5f10\\u62fe\\u634c\\u67d2\\u6f06\\u7396\\u767e\\u8086\\u842c\\u8cae\\u8cb3\\u8d30\\u9621\\u9646\\u964c\\u9678\\u96f6\\uf96b\\uf973\\uf978\\uf9b2\\uf9d1\\uf9d3\\uf9fd\\u{20001}\\u{20064}\\u{200e2}\\u{20121}\\u{2092a}\\u{20983}\\u{2098c}\\u{2099c}\\u{20aea}\\u{20afd}\\u{20b19}\\u{22390}\\u{22998}\\u{23b1b}\\u{2626d}\\u{2f890}";

const all = (set: string): ((text: string) => boolean) => {
  const pattern = new RegExp(`^[${set}]+$`, "u");
  return (text) => pattern.test(text);
};
const hasUpper = (text: string): boolean => /\p{Uppercase}/u.test(text);
const hasLower = (text: string): boolean => /\p{Lowercase}/u.test(text);

/** The `is…` methods. */
export const PREDICATES: Readonly<Record<string, (text: string) => boolean>> = {
  isalpha: all("\\p{L}"),
  isdecimal: all("\\p{Nd}"),
  isdigit: all(`\\p{Nd}${DIGIT}`),
  isnumeric: all(`\\p{N}${NUMERAL}`),
  isalnum: all(`\\p{L}\\p{N}`),
  isspace: isSpace,
  isascii: (text) => !/[^\0-\x7f]/.test(text),
  isidentifier: (text) => /^[\p{XID_Start}_]\p{XID_Continue}*$/u.test(text),
  isprintable: (text) => !/(?! )[\p{C}\p{Z}]/u.test(text),
  isupper: (text) => hasUpper(text) && !hasLower(text) && !/\p{Lt}/u.test(text),
  islower: (text) => hasLower(text) && !hasUpper(text) && !/\p{Lt}/u.test(text),
  istitle: isTitle,
};

function isTitle(text: string): boolean {
  let cased = false;
  let any = false;
  for (const c of text) {
    if (/[\p{Uppercase}\p{Lt}]/u.test(c)) {
      if (cased) return false;
      cased = any = true;
    } else if (/\p{Lowercase}/u.test(c)) {
      if (!cased) return false;
      any = true;
    } else cased = false;
  }
  return any;
}

export function expandTabs(text: string, size: number): string {
  charge(text.length);
  let column = 0;
  let out = "";
  for (const c of text) {
    if (c === "\t") {
      const width = size > 0 ? size - (column % size) : 0;
      chargeText(out.length + width);
      out += " ".repeat(width);
      column += width;
    } else {
      out += c;
      column = c === "\n" || c === "\r" ? 0 : column + 1;
    }
  }
  return out;
}
