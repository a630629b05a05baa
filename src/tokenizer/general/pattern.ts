/** Patterns of Oniguruma (Ruby syntax, as the Rust library uses it) as JS regular expressions over classes of its own tables. */
import { classRanges, escaped, next, type Parser, refused, take } from "./pattern-reader.ts";
import { shorthand } from "./properties.ts";
import { classSource, escapedPoint, type Ranges, union } from "./ranges.ts";

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
  if (named(p)) return close("(?:", alternatives(p, caseless)); // its name serves references only, which are refused
  if (take(p, ">")) return atomic(p, () => close("", alternatives(p, caseless)).slice(0, -1));
  throw refused(p, `the group (?${p.chars[p.at] ?? ""}`);
}

/** Passes over the name of a group, if there is one. */
function named(p: Parser): boolean {
  const name = /^<[A-Za-z_]\w*>/.exec(p.chars.slice(p.at, p.at + 40).join(""));
  if (name) p.at += name[0].length;
  return name !== null;
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
  if (c === "b" || c === "B") {
    const word = classSource(shorthand("w", false)!);
    const [at, notAt] = [
      `(?<=${word})(?!${word})|(?<!${word})(?=${word})`,
      `(?<=${word})(?=${word})|(?<!${word})(?!${word})`,
    ];
    return { source: `(?:${c === "b" ? at : notAt})` };
  }
  p.at--;
  const found = escaped(p, false);
  return typeof found === "number"
    ? { source: literal(p, String.fromCodePoint(found), caseless) }
    : { source: classOf(p, found, caseless && found.length === 0) };
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
  if (match[3] !== "" && Number(match[3]) < Number(from)) throw refused(p, match[0]);
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
