/** Reading a pattern of Oniguruma: characters, escapes and bracketed classes. */
import { TokenizerError } from "../tokenizer.ts";
import { posixBracket, property, shorthand } from "./properties.ts";
import { complement, intersection, NOTHING, type Ranges, union } from "./ranges.ts";

export interface Parser {
  readonly source: string;
  readonly chars: readonly string[];
  at: number;
  /** Capturing groups so far: each atomic group takes one. */
  groups: number;
}

export const refused = ({ source }: Parser, what: string): TokenizerError =>
  new TokenizerError(`tokenizer.json has the pattern ${JSON.stringify(source)} with ${what}, which is not supported`);

/** Passes over `text` if it comes next. */
export function take(p: Parser, text: string): boolean {
  const chars = [...text];
  if (!chars.every((c, i) => p.chars[p.at + i] === c)) return false;
  p.at += chars.length;
  return true;
}

export function next(p: Parser): string {
  const c = p.chars[p.at++];
  if (c === undefined) throw refused(p, "an open end");
  return c;
}

const CONTROLS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, a: 7, e: 27 };

/** What stands behind a backslash: a code point, or a class. */
export function escaped(p: Parser, inBrackets: boolean): number | Ranges {
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

/** The code points of a bracketed class; its `[` is behind. */
export function classRanges(p: Parser): Ranges {
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
  if (take(p, "[:")) return posixClass(p);
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

function posixClass(p: Parser): Ranges {
  const negated = take(p, "^");
  let name = "";
  while (!take(p, ":]")) name += next(p);
  const ranges = posixBracket(name);
  if (!ranges) throw refused(p, `[:${name}:]`);
  return negated ? complement(ranges) : ranges;
}

function classPoint(p: Parser): number | Ranges {
  const c = next(p);
  return c === "\\" ? escaped(p, true) : c.codePointAt(0)!;
}
