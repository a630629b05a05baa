/** `text % values` and `text.format(…)`. */
import { ChatTemplateError } from "../errors.ts";
import { floatForm, formatValue, intForm } from "./format-spec.ts";
import { escapeHtml } from "./html.ts";
import { charge, chargeText } from "./limits.ts";
import { asIndex, numeric, toFloat, toInt } from "./numbers.ts";
import { Range } from "./objects.ts";
import { textLength } from "./sequences.ts";
import { repeat } from "./strings.ts";
import { asciiText, repr, str } from "./text.ts";
import {
  isDict,
  isInt,
  isList,
  Markup,
  PyFloat,
  Tuple,
  textOf,
  typeError,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";

/** What becomes of a printed value: Markup escapes it. */
type Print = (value: Value) => string;
const printer = (text: string | Markup): Print => (text instanceof Markup ? (value) => escapeHtml(value).text : str);
const like = (text: string | Markup, result: string): Value => (text instanceof Markup ? new Markup(result) : result);

const PERCENT = /%(?:\(([^)]*)\))?([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+)?)?[hlL]?(.)?/gsu;

/** `text % values`. */
export function percentFormat(text: string | Markup, values: Value): Value {
  const source = textOf(text) as string;
  const print = printer(text);
  const list = values instanceof Tuple ? values.items : [values];
  const named = isDict(values) ? values : undefined;
  let next = 0;
  let byName = false;
  const take = (): Value => {
    const value = list[next++];
    return value === undefined ? typeError("not enough arguments for format string") : value;
  };
  let length = source.length;
  const result = source.replace(
    PERCENT,
    (match, key?: string, flags = "", width?: string, precision?: string, form?: string, ..._rest: unknown[]) => {
      charge(1);
      if (form === undefined) throw new ChatTemplateError("incomplete format");
      if (key !== undefined) {
        if (named === undefined) typeError("format requires a mapping");
        byName = true;
      }
      const star = (given?: string): number | undefined => {
        if (given !== "*") return given === undefined ? undefined : Number(given);
        const value = take();
        return isInt(value) || typeof value === "boolean" ? asIndex(value) : typeError("* wants int");
      };
      let wide = star(width);
      let left = flags.includes("-");
      if (wide !== undefined && wide < 0) {
        left = true;
        wide = -wide;
      }
      const places =
        match.includes(".") && form !== "%"
          ? (star(precision) ?? (/\.[^\d*]/.test(match.slice(key?.length ?? 0)) ? 0 : undefined))
          : undefined;
      if (form === "%") return "%";
      if ((wide ?? 0) > 1e8 || (places ?? 0) > 1e6) throw new ChatTemplateError("width too big");
      const value = key === undefined ? take() : lookUp(named as ReadonlyMap<unknown, Value>, key);
      const text = convert(value, form, { flags, left, width: wide ?? 0, places }, print);
      length += text.length;
      chargeText(length);
      return text;
    },
  );
  if (!byName && next < list.length && !hasItems(values))
    typeError("not all arguments converted during string formatting");
  return like(text, result);
}

/** What can be indexed may be a mapping: it need not be used up. */
const hasItems = (value: Value): boolean =>
  isList(value) || isDict(value) || value instanceof Undefined || value instanceof Range;

function lookUp(named: ReadonlyMap<unknown, Value>, key: string): Value {
  const value = named.get(key);
  if (value === undefined) throw new ChatTemplateError(`no key '${key}' to format`);
  return value;
}

interface Shape {
  readonly flags: string;
  readonly left: boolean;
  readonly width: number;
  readonly places: number | undefined;
}

function convert(value: Value, form: string, { flags, left, width, places }: Shape, print: Print): string {
  const fill = (lead: string, body: string, zero: boolean): string => {
    const missing = width - lead.length - textLength(body);
    if (missing <= 0) return lead + body;
    if (left) return lead + body + repeat(" ", missing);
    return zero ? lead + repeat("0", missing) + body : repeat(" ", missing) + lead + body;
  };
  if (form === "s" || form === "r" || form === "a") {
    const text = form === "s" ? print(value) : form === "r" ? print(repr(value)) : asciiText(print(repr(value)));
    return fill("", places === undefined ? text : Array.from(text).slice(0, places).join(""), false);
  }
  if (form === "c") {
    const text = textOf(value);
    if (text !== undefined && textLength(text) === 1) return fill("", text, false);
    const code = numeric(value);
    if (code === undefined || code instanceof PyFloat) return typeError("%c requires int or char");
    return fill("", intForm(code, "c", false)[1], false);
  }
  if (value instanceof Undefined) value.fail();
  const number = numeric(value);
  if (number === undefined) typeError(`%${form} format: a real number is required, not ${typeName(value)}`);
  const zero = flags.includes("0") && !left;
  const plus = flags.includes("+") ? "+" : flags.includes(" ") ? " " : "";
  const alternate = flags.includes("#");
  if ("diuxXo".includes(form)) {
    if (number instanceof PyFloat && "xXo".includes(form))
      typeError(`%${form} format: an integer is required, not float`);
    const [lead, digits] = intForm(toInt(number), "xXo".includes(form) ? form : "d", alternate);
    return fill(lead.startsWith("-") ? lead : plus + lead, digits.padStart(places ?? 0, "0"), zero);
  }
  if (!"eEfFgG".includes(form)) throw new ChatTemplateError(`unsupported format character '${form}'`);
  const n = toFloat(number);
  const lead = n < 0 || Object.is(n, -0) ? "-" : plus;
  return fill(lead, floatForm(Math.abs(n), form, places, alternate), zero && Number.isFinite(n));
}

/** How a field goes into its value: `{0.name}`, `{0[key]}`. */
export interface Access {
  readonly attribute: (value: Value, name: string) => Value;
  readonly item: (value: Value, key: Value) => Value;
}

/** `text.format(*args, **kwargs)`. */
export function braceFormat(
  text: string | Markup,
  args: readonly Value[],
  kwargs: ReadonlyMap<unknown, Value>,
  access: Access,
): Value {
  const state = { auto: 0, manual: false };
  const print = printer(text);
  const field = (name: string): Value => fieldValue(name, args, kwargs, state, access);
  const format = (value: Value, spec: string): string => {
    if (!(text instanceof Markup)) return formatValue(value, spec);
    if (value instanceof Markup && spec !== "")
      throw new ChatTemplateError("Unsupported format specification for Markup");
    return print(value instanceof Markup ? value : formatValue(value, spec));
  };
  const result = expand(textOf(text) as string, field, format, 2);
  chargeText(result.length);
  return like(text, result);
}

function expand(
  text: string,
  field: (name: string) => Value,
  format: (value: Value, spec: string) => string,
  depth: number,
): string {
  if (depth < 0) throw new ChatTemplateError("Max string recursion exceeded");
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const c = text[i] as string;
    if (c !== "{" && c !== "}") {
      const rest = /[{}]/.exec(text.slice(i, i + 64))?.index ?? Math.min(64, text.length - i);
      out += text.slice(i, i + rest);
      i += rest - 1;
      continue;
    }
    charge(1);
    if (text[i + 1] === c) {
      out += c;
      i++;
      continue;
    }
    if (c === "}") throw new ChatTemplateError("Single '}' encountered in format string");
    const end = closing(text, i);
    out += replacement(text.slice(i + 1, end), field, format, depth);
    chargeText(out.length);
    i = end;
  }
  return out;
}

function replacement(
  inner: string,
  field: (name: string) => Value,
  format: (value: Value, spec: string) => string,
  depth: number,
): string {
  const [, name = "", conversion, spec = ""] = /^((?:\[[^\]]*\]|[^!:[])*)(?:!([^:]*))?(?::(.*))?$/su.exec(inner) ?? [
    "",
    inner,
  ];
  let value = field(name);
  if (conversion === "r") value = repr(value);
  else if (conversion === "s") value = str(value);
  else if (conversion === "a") value = asciiText(repr(value));
  else if (conversion !== undefined) throw new ChatTemplateError(`Unknown conversion specifier ${conversion}`);
  return format(value, expand(spec, field, format, depth - 1));
}

/** Index of the brace that closes the one at `open`. */
function closing(text: string, open: number): number {
  let nested = 0;
  for (let i = open; i < text.length; i++) {
    if (text[i] === "{") nested++;
    else if (text[i] === "}" && --nested === 0) return i;
    else if (text[i] === "[" && nested === 1) {
      const end = text.indexOf("]", i);
      if (end > 0 && /^[^:!{}]*$/.test(text.slice(open + 1, i))) i = end;
    }
  }
  throw new ChatTemplateError("expected '}' before end of string");
}

function fieldValue(
  name: string,
  args: readonly Value[],
  kwargs: ReadonlyMap<unknown, Value>,
  state: { auto: number; manual: boolean },
  access: Access,
): Value {
  const first = /^[^.[]*/.exec(name)?.[0] ?? "";
  let value: Value | undefined;
  if (first === "") {
    if (state.manual)
      throw new ChatTemplateError("cannot switch from manual field specification to automatic field numbering");
    value = args[state.auto++];
  } else if (/^\d+$/.test(first)) {
    if (state.auto > 0)
      throw new ChatTemplateError("cannot switch from manual field specification to automatic field numbering");
    state.manual = true;
    value = args[Number(first)];
  } else value = kwargs.get(first);
  if (value === undefined) throw new ChatTemplateError(`no value for the format field '${first}'`);
  for (const part of name.slice(first.length).match(/\.[^.[]*|\[[^\]]*\]/g) ?? []) {
    if (part.startsWith(".")) value = access.attribute(value, part.slice(1));
    else {
      const key = part.slice(1, -1);
      value = access.item(value, /^\d+$/.test(key) ? Number(key) : key);
    }
  }
  return value;
}
