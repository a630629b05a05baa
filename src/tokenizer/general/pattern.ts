/** Patterns of Oniguruma (Ruby syntax, as the Rust library uses it) as JS regular expressions over classes of its own tables. */
import { TokenizerError } from "../tokenizer.ts";
import { property, shorthand } from "./properties.ts";
import { classSource, complement, escapedPoint, intersection, NOTHING, type Ranges, union } from "./ranges.ts";

interface Parser {
  readonly source: string;
  readonly chars: readonly string[];
  at: number;
  /** Capturing groups so far: each atomic group takes one. */
  groups: number;
}

/**
 * A global JS expression that matches where the pattern does. Throws `TokenizerError` for a construct that has no exact
 * translation.
 */
export function compilePattern(source: string): RegExp {
  const parser: Parser = { source, chars: [...source], at: 0, groups: 0 };
  const out = alternatives(parser, false);
  if (parser.at < parser.chars.length) throw refused(parser, "a parenthesis without its other half");
  return new RegExp(out, "gu");
}

const refused = ({ source }: Parser, what: string): TokenizerError =>
  new TokenizerError(`tokenizer.json has the pattern ${JSON.stringify(source)} with ${what}, which is not supported`);

function take(p: Parser, text: string): boolean {
  const chars = [...text];
  if (!chars.every((c, i) => p.chars[p.at + i] === c)) return false;
  p.at += chars.length;
  return true;
}

function next(p: Parser): string {
  const c = p.chars[p.at++];
  if (c === undefined) throw refused(p, "an open end");
  return c;
}

/** Alternatives up to a closing parenthesis or the end. `caseless`: letters of both cases match. */
function alternatives(p: Parser, caseless: boolean): string {
  let mode = caseless;
  let out = "";
  let first = true;
  /** The last letter if it stood alone: some pairs of letters match one character when case does not count. */
  let previous = "";
  let switched = false;
  while (p.at < p.chars.length && p.chars[p.at] !== ")") {
    if (take(p, "|")) {
      if (switched) throw refused(p, "(?i) in the middle of an alternative");
      out += "|";
      previous = "";
      first = true;
      continue;
    }
    const option = optionSwitch(p);
    if (option !== undefined) {
      switched ||= !first || out !== "";
      mode = option;
      continue;
    }
    first = false;
    const literal = p.chars[p.at]!;
    const atom = parseAtom(p, mode);
    const plain = atom.literal ? literal.toLowerCase() : "";
    if (mode && /^(ss|st|ff|fi|fl)$/.test(previous + plain)) throw refused(p, `${previous}${plain} in any case`);
    previous = plain;
    out += quantified(p, atom.source);
  }
  return out;
}

/** `(?i)` and `(?-i)`: what they say about case. */
function optionSwitch(p: Parser): boolean | undefined {
  if (take(p, "(?i)")) return true;
  return take(p, "(?-i)") ? false : undefined;
}

interface Atom {
  readonly source: string;
  readonly literal?: boolean;
}

function parseAtom(p: Parser, caseless: boolean): Atom {
  const c = next(p);
  switch (c) {
    case "(":
      return { source: group(p, caseless) };
    case "[":
      return { source: classOf(p, classRanges(p), caseless) };
    case ".":
      return { source: "[^\\n]" };
    case "^":
      return { source: "(?:(?<![^])|(?<=\\n)(?=[^]))" };
    case "$":
      return { source: "(?![^\\n])" };
    case "\\":
      return escapedAtom(p, caseless);
    case "*":
    case "+":
    case "?":
      throw refused(p, `${c} after nothing`);
    default:
      return { source: literal(p, c, caseless), literal: true };
  }
}

function group(p: Parser, caseless: boolean): string {
  const close = (open: string, inner: string): string => {
    if (!take(p, ")")) throw refused(p, "a parenthesis without its other half");
    return `${open}${inner})`;
  };
  if (!take(p, "?")) return close("(?:", alternatives(p, caseless));
  for (const open of [":", "=", "!", "<=", "<!"])
    if (take(p, open)) return close(`(?${open}`, alternatives(p, caseless));
  if (take(p, "i:")) return close("(?:", alternatives(p, true));
  if (take(p, "-i:")) return close("(?:", alternatives(p, false));
  if (take(p, ">")) return atomic(p, () => close("", alternatives(p, caseless)).slice(0, -1));
  throw refused(p, `the group (?${p.chars[p.at] ?? ""}`);
}

/** What was matched once stays matched: a look-ahead never goes back into itself. */
function atomic(p: Parser, inner: () => string): string {
  const number = ++p.groups;
  return `(?:(?=(${inner()}))\\${number})`;
}

function escapedAtom(p: Parser, caseless: boolean): Atom {
  const c = next(p);
  if (c === "A") return { source: "(?<![^])" };
  if (c === "z") return { source: "(?![^])" };
  p.at--;
  const found = escaped(p, false);
  return typeof found === "number"
    ? { source: literal(p, String.fromCodePoint(found), caseless) }
    : { source: classOf(p, found, caseless && found.length === 0) };
}

const CONTROLS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, a: 7, e: 27 };

/** What stands behind a backslash: a code point, or a class. */
function escaped(p: Parser, inBrackets: boolean): number | Ranges {
  const c = next(p);
  const control = CONTROLS[c];
  if (control !== undefined) return control;
  if (c === "p" || c === "P") {
    const name = braced(p);
    const ranges = property(name.replace(/^\^/, ""));
    if (!ranges) throw refused(p, `\\p{${name}}`);
    return (c === "P") !== name.startsWith("^") ? complement(ranges) : ranges;
  }
  const class_ = shorthand(c, inBrackets);
  if (class_) return class_;
  if (c === "x" || c === "u") {
    const digits =
      c === "x" && p.chars[p.at] === "{" ? braced(p) : p.chars.slice(p.at, (p.at += c === "x" ? 2 : 4)).join("");
    if (!/^[0-9A-Fa-f]+$/.test(digits) || Number.parseInt(digits, 16) > 0x10ffff) throw refused(p, `\\${c}`);
    return Number.parseInt(digits, 16);
  }
  if (/[0-9A-Za-z]/.test(c)) throw refused(p, `\\${c}`);
  return c.codePointAt(0)!;
}

function braced(p: Parser): string {
  const end = p.chars.indexOf("}", p.at);
  if (p.chars[p.at] !== "{" || end < 0) throw refused(p, "a brace that is missing");
  const text = p.chars.slice(p.at + 1, end).join("");
  p.at = end + 1;
  return text;
}

const single = (c: string): Ranges => [c.codePointAt(0)!, c.codePointAt(0)! + 1];

function literal(p: Parser, c: string, caseless: boolean): string {
  return caseless ? classOf(p, single(c), true) : escapedPoint(c.codePointAt(0)!);
}

function classOf(p: Parser, ranges: Ranges, caseless: boolean): string {
  let all = ranges;
  if (caseless) {
    for (let i = 0; i < ranges.length; i += 2) {
      for (let code = ranges[i]!; code < ranges[i + 1]!; code++) {
        const c = String.fromCodePoint(code);
        if (code > 127 && (ranges[i + 1]! - ranges[i]! > 64 || /[\p{L}\p{M}\p{N}\p{S}]/u.test(c)))
          throw refused(p, `${JSON.stringify(c)} in any case`);
        all = union(all, union(single(c.toLowerCase()), single(c.toUpperCase())));
        // the long s and the Kelvin sign
        if (/s/i.test(c)) all = union(all, [0x17f, 0x180]);
        if (/k/i.test(c)) all = union(all, [0x212a, 0x212b]);
      }
    }
  }
  return classSource(all);
}

/** The code points of a bracketed class; its `[` is behind. */
function classRanges(p: Parser): Ranges {
  const negated = take(p, "^");
  let all: Ranges | undefined;
  let part: Ranges = NOTHING;
  for (let first = true; ; first = false) {
    if (p.chars[p.at] === "]") {
      if (first) throw refused(p, "an empty class");
      p.at++;
      break;
    }
    if (take(p, "&&")) {
      all = all ? intersection(all, part) : part;
      part = NOTHING;
      continue;
    }
    part = union(part, classMember(p));
  }
  all = all ? intersection(all, part) : part;
  return negated ? complement(all) : all;
}

function classMember(p: Parser): Ranges {
  if (take(p, "[:")) throw refused(p, "a POSIX bracket");
  if (take(p, "[")) return classRanges(p);
  const from = classPoint(p);
  if (typeof from !== "number") return from;
  if (p.chars[p.at] !== "-" || p.chars[p.at + 1] === "]") return [from, from + 1];
  p.at++;
  if (p.chars[p.at] === "[") throw refused(p, "a range up to a class");
  const to = classPoint(p);
  if (typeof to !== "number" || to < from) throw refused(p, "a range that is none");
  return [from, to + 1];
}

function classPoint(p: Parser): number | Ranges {
  const c = next(p);
  return c === "\\" ? escaped(p, true) : c.codePointAt(0)!;
}

/** The atom with what says how often it is wanted. */
function quantified(p: Parser, atom: string): string {
  let out = atom;
  for (;;) {
    const sign = ["*", "+", "?"].find((s) => take(p, s));
    const interval = sign === undefined ? takeInterval(p) : undefined;
    if (sign !== undefined) {
      const loop = `${out === atom ? out : `(?:${out})`}${sign}`;
      if (take(p, "?")) out = `${loop}?`;
      else if (take(p, "+")) out = atomic(p, () => loop);
      else out = loop;
    } else if (interval) {
      const loop = `${out === atom ? out : `(?:${out})`}${interval.source}`;
      // after a fixed number `?` makes it optional, in the syntax of Ruby
      out = !interval.fixed && take(p, "?") ? `${loop}?` : loop;
    } else return out;
  }
}

function takeInterval(p: Parser): { source: string; fixed: boolean } | undefined {
  const match = /^\{(\d*)(,?)(\d*)\}/.exec(p.chars.slice(p.at, p.at + 24).join(""));
  if (!match || (match[1] === "" && match[3] === "")) return undefined;
  p.at += match[0].length;
  const from = match[1] || "0";
  return match[2] === ""
    ? { source: `{${from}}`, fixed: true }
    : { source: `{${from},${match[3]}}`, fixed: match[3] === match[1] };
}

/** All matches of an expression from `compilePattern`, as flat pairs of from and to, as Oniguruma's iterator gives them. */
export function findMatches(pattern: RegExp, text: string): number[] {
  const out: number[] = [];
  let last = -1;
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const from = match.index;
    const to = from + match[0].length;
    if (to === from && to === last) {
      if (to >= text.length) break;
      pattern.lastIndex = to + (text.codePointAt(to)! > 0xffff ? 2 : 1);
      continue;
    }
    out.push(from, to);
    last = to;
    pattern.lastIndex = to;
  }
  return out;
}
