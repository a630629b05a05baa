/** The methods of str. Those that only make sense in other programs (encode) are not there. */
import { ChatTemplateError } from "../errors.ts";
import { type Builtin, builtin, wantText } from "./calls.ts";
import { escapeHtml } from "./html.ts";
import { charge, chargeScan, chargeText, MAX_TEXT } from "./limits.ts";
import { asIndex } from "./numbers.ts";
import { charAt, codePoints, isWide, iterate, sliceIndices, textLength } from "./sequences.ts";
import * as strings from "./strings.ts";
import {
  type Dict,
  isDict,
  isInt,
  itemsOf,
  Markup,
  PyDict,
  Tuple,
  textOf,
  typeError,
  typeName,
  type Value,
} from "./values.ts";

type TextMethod = (text: string, ...args: Value[]) => Value;

/** The result of a method of Markup is Markup. */
function wrapped(value: Value): Value {
  if (typeof value === "string") return new Markup(value);
  if (Array.isArray(value)) return (value as Value[]).map(wrapped);
  return value instanceof Tuple ? new Tuple(value.items.map(wrapped)) : value;
}

function method(text: string, run: TextMethod): readonly [name: string, method: Builtin] {
  const name = text.slice(0, text.indexOf("("));
  const rest = text.slice(name.length + 1);
  return [
    name,
    builtin(`${name}(self, ${rest}`.replace(", )", ")"), (self, ...args) =>
      typeof self === "string" ? run(self, ...args) : wrapped(run((self as Markup).text, ...args)),
    ),
  ];
}

const optional = (value: Value): string | undefined => (value === null ? undefined : wantText(value));

const stripping = (name: string, side: strings.Side) =>
  method(`${name}(characters=none, /)`, (text, characters) => strings.strip(text, optional(characters as Value), side));

function padding(name: string, sides: (missing: number, width: number) => readonly [left: number, right: number]) {
  const run = (self: Value, width: Value, fill: Value): Value => {
    const text = textOf(self) as string;
    const filler = self instanceof Markup ? escapeHtml(fill).text : wantText(fill);
    if (textLength(filler) !== 1) typeError("The fill character must be exactly one character long");
    const missing = Math.max(0, asIndex(width) - textLength(text));
    const [left, right] = sides(missing, asIndex(width));
    const padded = strings.repeat(filler, left) + text + strings.repeat(filler, right);
    return self instanceof Markup ? new Markup(padded) : padded;
  };
  return [
    name,
    builtin(`${name}(self, width, fillchar=' ', /)`, (...args) =>
      run(args[0] as Value, args[1] as Value, args[2] ?? " "),
    ),
  ] as const;
}

/** The part of a text between two optional code point indices, and where it begins; undefined: the range is empty before it begins. */
function range(text: string, start: Value, end: Value): { part: string; offset: number } | undefined {
  if (start === null && end === null) return { part: text, offset: 0 };
  charge(text.length >> 4);
  const points = isWide(text) ? Array.from(text) : text;
  const { from, to } = sliceIndices(points.length, start, end, null);
  if (start !== null && asIndex(start) > points.length) return undefined;
  if (to < from) return undefined;
  return typeof points === "string"
    ? { part: points.slice(from, to), offset: from }
    : { part: points.slice(from, to).join(""), offset: from };
}

function search(name: string, find: (text: string, part: string) => number, fails: boolean) {
  return method(`${name}(sub, start=none, end=none, /)`, (text, sub, start, end) => {
    const part = wantText(sub as Value);
    const within = range(text, start as Value, end as Value);
    charge(text.length >> 6);
    const at = within === undefined ? -1 : find(within.part, part);
    if (at < 0 || within === undefined) {
      if (fails) throw new ChatTemplateError("substring not found");
      return -1;
    }
    return within.offset + textLength(within.part.slice(0, at));
  });
}

function affix(name: string, has: (text: string, part: string) => boolean) {
  return method(`${name}(affix, start=none, end=none, /)`, (text, given, start, end) => {
    const within = range(text, start as Value, end as Value);
    const options = given instanceof Tuple ? given.items : [given as Value];
    return options.some((option) => {
      charge(1);
      const part = wantText(option, `${name} first arg`);
      return within !== undefined && has(within.part, part);
    });
  });
}

function partition(name: string, at: (text: string, separator: string) => number, last: boolean) {
  return method(`${name}(sep, /)`, (text, sep) => {
    const separator = wantText(sep as Value);
    if (separator === "") throw new ChatTemplateError("empty separator");
    charge(text.length >> 6);
    const index = at(text, separator);
    if (index < 0) return new Tuple(last ? ["", "", text] : [text, "", ""]);
    return new Tuple([text.slice(0, index), separator, text.slice(index + separator.length)]);
  });
}

const simple = (name: string, run: (text: string) => Value) =>
  method(`${name}()`, (text) => {
    chargeText(text.length);
    chargeScan(text.length);
    return run(text);
  });

function join(self: Value, given: Value): Value {
  const separator = textOf(self) as string;
  const parts: string[] = [];
  const source = iterate(given);
  let length = 0;
  for (let step = source.next(); step.done !== true; step = source.next()) {
    charge(1);
    const part = self instanceof Markup ? escapeHtml(step.value).text : textOf(step.value);
    if (part === undefined)
      typeError(`sequence item ${parts.length}: expected str instance, ${typeName(step.value)} found`);
    parts.push(part);
    length += part.length + separator.length;
    if (length > MAX_TEXT) chargeText(length);
  }
  chargeText(length);
  const joined = parts.join(separator);
  return self instanceof Markup ? new Markup(joined) : joined;
}

/** A table of code points for `translate`. */
function makeTable(from: Value, to: Value, drop: Value): Dict {
  const table = new PyDict();
  if (isDict(from) && to === null) {
    for (const [key, value] of from) table.set(typeof key === "string" ? (key.codePointAt(0) ?? 0) : key, value);
    return table;
  }
  const [a, b] = [codePoints(wantText(from)), codePoints(wantText(to))];
  if (a.length !== b.length) throw new ChatTemplateError("the first two maketrans arguments must have equal length");
  for (const [i, c] of a.entries()) table.set(c.codePointAt(0) ?? 0, b[i]?.codePointAt(0) ?? 0);
  for (const c of drop === null ? [] : codePoints(wantText(drop))) table.set(c.codePointAt(0) ?? 0, null);
  return table;
}

function translate(text: string, table: Value): string {
  const out = codePoints(text).map((c) => {
    const value = getter(table, c.codePointAt(0) ?? 0);
    if (value === undefined) return c;
    return value === null ? "" : isInt(value) ? String.fromCodePoint(Number(value)) : wantText(value);
  });
  chargeText(out.reduce((sum, part) => sum + part.length, 0));
  return out.join("");
}

function getter(table: Value, code: number): Value | undefined {
  const text = textOf(table);
  return isDict(table)
    ? table.get(code)
    : (itemsOf(table)?.[code] ?? (text === undefined ? undefined : charAt(text, code)));
}

function zfill(text: string, width: Value): string {
  const sign = /^[+-]/.exec(text)?.[0] ?? "";
  return sign + strings.repeat("0", asIndex(width) - textLength(text)) + text.slice(sign.length);
}

/** All but those that format: they need what `attributes.ts` knows. */
export const TEXT_METHODS: ReadonlyMap<string, Builtin> = new Map<string, Builtin>([
  stripping("strip", "both"),
  stripping("lstrip", "left"),
  stripping("rstrip", "right"),
  method("split(sep=none, maxsplit=-1)", (text, sep, limit) =>
    strings.split(text, optional(sep as Value), asIndex(limit as Value)),
  ),
  method("rsplit(sep=none, maxsplit=-1)", (text, sep, limit) =>
    strings.rsplit(text, optional(sep as Value), asIndex(limit as Value)),
  ),
  method("splitlines(keepends=false)", (text, keep) =>
    strings.splitLines(text, keep === true || (keep !== false && keep !== 0)),
  ),
  affix("startswith", (text, part) => text.startsWith(part)),
  affix("endswith", (text, part) => text.endsWith(part)),
  search("find", (text, part) => text.indexOf(part), false),
  search("rfind", (text, part) => text.lastIndexOf(part), false),
  search("index", (text, part) => text.indexOf(part), true),
  search("rindex", (text, part) => text.lastIndexOf(part), true),
  method("count(sub, start=none, end=none, /)", (text, sub, start, end) => {
    const part = wantText(sub as Value);
    const within = range(text, start as Value, end as Value);
    return within === undefined ? 0 : strings.countOf(within.part, part);
  }),
  partition("partition", (text, separator) => text.indexOf(separator), false),
  partition("rpartition", (text, separator) => text.lastIndexOf(separator), true),
  ["join", builtin("join(self, iterable, /)", (self, given) => join(self as Value, given as Value))],
  [
    "replace",
    builtin("replace(self, old, new, count=-1, /)", (self, old, replacement, count) => {
      const plain = strings.replace(
        textOf(self as Value) as string,
        wantText(old as Value),
        self instanceof Markup ? escapeHtml(replacement as Value).text : wantText(replacement as Value),
        asIndex(count as Value),
      );
      return self instanceof Markup ? new Markup(plain) : plain;
    }),
  ],
  padding("ljust", (missing) => [0, missing]),
  padding("rjust", (missing) => [missing, 0]),
  // the odd one goes to the left when both the width and what is missing are odd
  padding("center", (missing, width) => {
    const left = (missing >> 1) + (missing & width & 1);
    return [left, missing - left];
  }),
  method("zfill(width, /)", (text, width) => zfill(text, width as Value)),
  method("removeprefix(prefix, /)", (text, prefix) => {
    const part = wantText(prefix as Value);
    return text.startsWith(part) ? text.slice(part.length) : text;
  }),
  method("removesuffix(suffix, /)", (text, suffix) => {
    const part = wantText(suffix as Value);
    return part !== "" && text.endsWith(part) ? text.slice(0, -part.length) : text;
  }),
  method("expandtabs(tabsize=8)", (text, size) => strings.expandTabs(text, asIndex(size as Value))),
  method("translate(table, /)", (text, table) => translate(text, table as Value)),
  [
    "maketrans",
    builtin("maketrans(self, from, to=none, drop=none, /)", (_, a, b, c) =>
      makeTable(a as Value, b as Value, c as Value),
    ),
  ],
  simple("lower", (text) => text.toLowerCase()),
  simple("upper", (text) => text.toUpperCase()),
  simple("title", strings.title),
  simple("capitalize", strings.capitalize),
  simple("swapcase", strings.swapCase),
  simple("casefold", strings.caseFold),
  ...Object.entries(strings.PREDICATES).map(([name, holds]) => simple(name, holds)),
]);
