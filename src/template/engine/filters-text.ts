/** Filters on texts. */
import { ChatTemplateError } from "../errors.ts";
import { methodOf } from "./attributes.ts";
import { type Builtin, builtin, callMethod, wantText } from "./calls.ts";
import { pairsOf } from "./dict.ts";
import { fixed } from "./format-spec.ts";
import { escapeHtml, escapeText, stripTags } from "./html.ts";
import { charge, chargeScan, chargeText } from "./limits.ts";
import { asIndex, parseFloatText, toFloat, toInt } from "./numbers.ts";
import { pprint } from "./pprint.ts";
import { codePoints, lengthOf, listOf, textLength } from "./sequences.ts";
import { percentFormat } from "./string-format.ts";
import { repeat, replace, rsplit, splitLines } from "./strings.ts";
import { repr, str } from "./text.ts";
import { urlize } from "./urlize.ts";
import {
  isDict,
  isText,
  itemsOf,
  type Kwargs,
  Markup,
  PyDict,
  PyFloat,
  Tuple,
  textOf,
  truthy,
  typeError,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";
import { SPACE_CLASS } from "./whitespace.ts";
import { wordwrap } from "./wordwrap.ts";

/** Text stays as it is, Markup too; others are printed. */
const soft = (value: Value): string | Markup => (isText(value) ? value : str(value));
const raw = (value: Value): string => str(value);
const like = (value: Value, text: string): Value => (value instanceof Markup ? new Markup(text) : text);

/** A filter that is a method of str. */
const asMethod = (name: string, text: string, ...args: string[]): readonly [string, Builtin] => [
  name,
  builtin(text, (value, ...given) => {
    const self = soft(value as Value);
    const method = methodOf(self, args[0] ?? name) as Builtin;
    return callMethod(self, method, given, undefined);
  }),
];

const TITLE_BREAK = new RegExp(`([-({[<${SPACE_CLASS}]+)`);
const title = (value: Value): string =>
  raw(value)
    .split(TITLE_BREAK)
    .map((part) => {
      const [first = ""] = part;
      return first.toUpperCase() + part.slice(first.length).toLowerCase();
    })
    .join("");

function indent(value: Value, width: Value, first: Value, blank: Value): Value {
  if (value instanceof Undefined) return value.fail();
  const text = wantText(value, "indent");
  const step = isText(width) ? raw(width) : repeat(" ", asIndex(width));
  const lines = splitLines(`${text}\n`, false);
  const [head = "", ...rest] = lines;
  chargeText(text.length + step.length * lines.length);
  let out = head;
  if (truthy(blank)) out = lines.join(`\n${step}`);
  else if (rest.length > 0) out += `\n${rest.map((line) => (line === "" ? line : step + line)).join("\n")}`;
  return like(value, truthy(first) ? step + out : out);
}

function truncate(value: Value, length: Value, killwords: Value, end: Value, leeway: Value): Value {
  if (value instanceof Undefined) return value;
  const ending = wantText(end, "end");
  const room = asIndex(length);
  const slack = leeway === null ? 5 : asIndex(leeway);
  const endLength = textLength(ending);
  if (room < endLength) throw new ChatTemplateError(`expected length >= ${endLength}, got ${room}`);
  if (slack < 0) throw new ChatTemplateError(`expected leeway >= 0, got ${slack}`);
  if (lengthOf(value) <= room + slack) return value;
  const points = codePoints(wantText(value, "truncate"));
  const cut = points.slice(0, room - endLength).join("");
  const kept = truthy(killwords) ? cut : (rsplit(cut, " ", 1)[0] ?? "");
  return like(value, kept + (value instanceof Markup ? escapeHtml(end).text : ending));
}

function urlQuote(value: Value, query: boolean): string {
  charge(raw(value).length * 4);
  let out = "";
  for (const byte of new TextEncoder().encode(raw(value))) {
    const c = String.fromCharCode(byte);
    out +=
      /[A-Za-z0-9_.~-]/.test(c) || (c === "/" && !query) ? c : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return query ? out.replaceAll("%20", "+") : out;
}

function urlencode(value: Value): string {
  if (isText(value) || (itemsOf(value) === undefined && !isDict(value))) return urlQuote(value, false);
  const pairs = isDict(value) ? [...pairsOf(value)] : (itemsOf(value) ?? []).map(listOf);
  if (pairs.some((pair) => pair.length !== 2)) throw new ChatTemplateError("urlencode wants pairs");
  return pairs.map(([key, item]) => `${urlQuote(key as Value, true)}=${urlQuote(item as Value, true)}`).join("&");
}

function xmlattr(value: Value, autospace: Value): string {
  if (!isDict(value)) return typeError(`'${typeName(value)}' object has no attribute 'items'`);
  const parts: string[] = [];
  for (const [key, item] of value) {
    if (item === null || item instanceof Undefined) continue;
    const name = wantText(key as Value, "attribute name");
    if (/[ \t\n\r\f\v/>=]/.test(name))
      throw new ChatTemplateError(`Invalid character in attribute name: ${repr(name)}`);
    parts.push(`${escapeText(name)}="${escapeHtml(item).text}"`);
  }
  const text = parts.join(" ");
  return truthy(autospace) && text !== "" ? ` ${text}` : text;
}

const UNITS = ["k", "M", "G", "T", "P", "E", "Z", "Y"];

function filesizeformat(value: Value, binary: Value): string {
  const text = textOf(value);
  const bytes =
    text === undefined
      ? toFloat(value instanceof PyFloat ? value : toInt(value))
      : (parseFloatText(text) ?? Number.NaN);
  if (Number.isNaN(bytes)) throw new ChatTemplateError("could not convert string to float");
  const base = truthy(binary) ? 1024 : 1000;
  if (bytes === 1) return "1 Byte";
  if (bytes < base) return `${Math.trunc(bytes)} Bytes`;
  let unit = base;
  for (const prefix of UNITS) {
    unit *= base;
    if (bytes < unit || prefix === "Y")
      return `${fixed((base * bytes) / unit, 1)} ${truthy(binary) ? `${prefix.toUpperCase()}iB` : `${prefix}B`}`;
  }
  return "";
}

function format(value: Value, args: readonly Value[], kwargs: Kwargs): Value {
  if (args.length > 0 && kwargs.size > 0)
    throw new ChatTemplateError("can't handle positional and keyword arguments at the same time");
  return percentFormat(soft(value), kwargs.size > 0 ? new PyDict(kwargs) : new Tuple(args));
}

function wordCount(value: Value): number {
  const text = raw(value);
  chargeScan(text.length);
  return text.match(/[\p{L}\p{N}_]+/gu)?.length ?? 0;
}

function replaced(value: Value, old: Value, by: Value, count: Value): string {
  return replace(raw(value), raw(old), raw(by), count === null ? -1 : asIndex(count));
}

const escapeFilter = builtin("escape(s, /)", (value) => escapeHtml(value as Value));

export const TEXT_FILTERS: readonly (readonly [string, Builtin])[] = [
  asMethod("upper", "upper(s)"),
  asMethod("lower", "lower(s)"),
  asMethod("capitalize", "capitalize(s)"),
  asMethod("trim", "trim(value, chars=none)", "strip"),
  asMethod("center", "center(value, width=80)"),
  ["title", builtin("title(s)", (value) => title(value as Value))],
  ["replace", builtin("replace(s, old, new, count=none)", (...a) => replaced(...(a as [Value, Value, Value, Value])))],
  [
    "indent",
    builtin("indent(s, width=4, first=false, blank=false)", (...a) => indent(...(a as [Value, Value, Value, Value]))),
  ],
  [
    "truncate",
    builtin("truncate(s, length=255, killwords=false, end='...', leeway=none)", (...a) =>
      truncate(...(a as [Value, Value, Value, Value, Value])),
    ),
  ],
  [
    "wordwrap",
    builtin("wordwrap(s, width=79, break_long_words=true, wrapstring=none, break_on_hyphens=true)", (...a) =>
      wordwrap(...(a as [Value, Value, Value, Value, Value])),
    ),
  ],
  ["wordcount", builtin("wordcount(s)", (value) => wordCount(value as Value))],
  [
    "format",
    builtin("format(value, *args, **kwargs)", (value, args, kwargs) =>
      format(value as Value, args as readonly Value[], kwargs as Kwargs),
    ),
  ],
  ["striptags", builtin("striptags(value)", (value) => stripTags(raw(value as Value)))],
  ["escape", escapeFilter],
  ["e", escapeFilter],
  ["forceescape", builtin("forceescape(value)", (value) => new Markup(escapeText(raw(value as Value))))],
  ["urlencode", builtin("urlencode(value)", (value) => urlencode(value as Value))],
  ["xmlattr", builtin("xmlattr(d, autospace=true)", (d, space) => xmlattr(d as Value, space as Value))],
  [
    "filesizeformat",
    builtin("filesizeformat(value, binary=false)", (value, binary) => filesizeformat(value as Value, binary as Value)),
  ],
  ["pprint", builtin("pprint(value)", (value) => pprint(value as Value))],
  [
    "urlize",
    builtin("urlize(value, trim_url_limit=none, nofollow=false, target=none, rel=none, extra_schemes=none)", (...a) =>
      urlize(...(a as [Value, Value, Value, Value, Value, Value])),
    ),
  ],
];
