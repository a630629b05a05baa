/** Character classes of Oniguruma by their names in patterns. */
import { CATEGORIES, categoryOf, Is, rangesWhere } from "./characters.ts";
import { complement, EVERYTHING, intersection, type Ranges, union } from "./ranges.ts";

const LONG_NAMES: Readonly<Record<string, string>> = {
  letter: "l",
  uppercaseletter: "lu",
  lowercaseletter: "ll",
  titlecaseletter: "lt",
  casedletter: "lc",
  modifierletter: "lm",
  otherletter: "lo",
  mark: "m",
  combiningmark: "m",
  nonspacingmark: "mn",
  spacingmark: "mc",
  enclosingmark: "me",
  number: "n",
  decimalnumber: "nd",
  letternumber: "nl",
  othernumber: "no",
  punctuation: "p",
  connectorpunctuation: "pc",
  dashpunctuation: "pd",
  openpunctuation: "ps",
  closepunctuation: "pe",
  initialpunctuation: "pi",
  finalpunctuation: "pf",
  otherpunctuation: "po",
  symbol: "s",
  mathsymbol: "sm",
  currencysymbol: "sc",
  modifiersymbol: "sk",
  othersymbol: "so",
  separator: "z",
  spaceseparator: "zs",
  lineseparator: "zl",
  paragraphseparator: "zp",
  other: "c",
  control: "cc",
  format: "cf",
  unassigned: "cn",
  privateuse: "co",
};

/** Scripts whose members equal the JS engine's among the characters that Oniguruma knows: test/golden/tokenizer-general checks it. */
export const SCRIPTS: readonly string[] = (
  "Arabic Armenian Bengali Bopomofo Braille Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han Hangul Hebrew " +
  "Hiragana Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Oriya Sinhala Tamil Telugu Thai Tibetan"
).split(" ");

const known = new Map<string, Ranges | undefined>();

/** The class that `\p{name}` names; undefined if there are no tables for it. Case, blanks, `-` and `_` do not count. */
export function property(name: string): Ranges | undefined {
  const key = name.toLowerCase().replace(/[ _-]/g, "");
  if (!known.has(key)) known.set(key, find(key));
  return known.get(key);
}

function find(key: string): Ranges | undefined {
  if (key === "any") return EVERYTHING;
  if (key === "ascii") return [0, 128];
  if (key === "space") return shorthand("s", false);
  if (key === "punct") return find("p");
  const short = LONG_NAMES[key] ?? key;
  if (short === "lc") return categories((c) => c === "Lu" || c === "Ll" || c === "Lt");
  // surrogates are in no text; they count as unassigned here
  if (short === "c") return categories((c) => c.startsWith("C"));
  if (/^[a-z]{1,2}$/.test(short)) {
    const wanted = short[0]!.toUpperCase() + short.slice(1);
    return CATEGORIES.some((c) => c.startsWith(wanted)) ? categories((c) => c.startsWith(wanted)) : undefined;
  }
  const script = SCRIPTS.find((s) => s.toLowerCase() === key);
  return script === undefined ? undefined : scriptRanges(script);
}

const categories = (wanted: (category: string) => boolean): Ranges =>
  rangesWhere((s) => wanted(CATEGORIES[categoryOf(s)]!));

function scriptRanges(script: string): Ranges {
  const one = new RegExp(`\\p{Script=${script}}`, "u");
  const out: number[] = [];
  const assigned = categories((c) => c !== "Cn" && c !== "Co");
  for (let i = 0; i < assigned.length; i += 2) {
    for (let c = assigned[i]!; c < assigned[i + 1]!; c++) {
      if (!one.test(String.fromCodePoint(c))) continue;
      if (out.at(-1) === c) out[out.length - 1] = c + 1;
      else out.push(c, c + 1);
    }
  }
  return out;
}

/** The class that `[:name:]` names within brackets; undefined if there are no tables for it. */
export function posixBracket(name: string): Ranges | undefined {
  if (name === "punct") return union(property("p")!, property("s")!);
  const letter = { space: "s", digit: "d", word: "w", xdigit: "h" }[name];
  return letter === undefined ? undefined : shorthand(letter, true);
}

/** In brackets `\w` has no superscripts and fractions of Latin-1; outside of them it has. */
const NO_WORD_IN_BRACKETS: Ranges = [0xb2, 0xb4, 0xb9, 0xba, 0xbc, 0xbf];

/**
 * The class of `\s`, `\w`, `\d`, `\h` (hexadecimal digits in this syntax) and, for capitals, of all others; undefined: no class.
 */
export function shorthand(letter: string, inBrackets: boolean): Ranges | undefined {
  const lower = letter.toLowerCase();
  if (lower === "w" && inBrackets) {
    const word = intersection(shorthand("w", false)!, complement(NO_WORD_IN_BRACKETS));
    return letter === "w" ? word : complement(word);
  }
  if (!known.has(`\\${lower}`)) known.set(`\\${lower}`, findShorthand(lower));
  const ranges = known.get(`\\${lower}`);
  return ranges && letter !== lower ? complement(ranges) : ranges;
}

function findShorthand(letter: string): Ranges | undefined {
  if (letter === "s") return rangesWhere((s) => (s & Is.white) !== 0);
  if (letter === "w") return rangesWhere((s) => (s & Is.word) !== 0);
  if (letter === "d") return categories((c) => c === "Nd");
  if (letter === "h") return [0x30, 0x3a, 0x41, 0x47, 0x61, 0x67];
  return undefined;
}
