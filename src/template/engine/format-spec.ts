/** Numbers and texts in a given form: `format(value, spec)`, and the exact rounding under it and `round()`. */
import { ChatTemplateError } from "../errors.ts";
import { chargeText } from "./limits.ts";
import { floatText, type Int, intText, numeric, toFloat } from "./numbers.ts";
import { textLength } from "./sequences.ts";
import { repeat } from "./strings.ts";
import { str } from "./text.ts";
import { PyFloat, textOf, typeError, typeName, type Value } from "./values.ts";

const buffer = new DataView(new ArrayBuffer(8));

/** A finite float of no sign as digits * 10 ** -scale, exactly. */
function exactDigits(size: number): { digits: bigint; scale: number } {
  buffer.setFloat64(0, size);
  const bits = buffer.getBigUint64(0);
  const raw = Number((bits >> 52n) & 0x7ffn);
  const mantissa = (bits & 0xfffffffffffffn) | (raw === 0 ? 0n : 1n << 52n);
  const exponent = (raw === 0 ? 1 : raw) - 1075;
  if (exponent >= 0) return { digits: mantissa << BigInt(exponent), scale: 0 };
  return { digits: mantissa * 5n ** BigInt(-exponent), scale: -exponent };
}

/** digits * 10 ** -scale rounded to `places` after the point (half to even), as an integer of 10 ** -places. */
function roundTo(digits: bigint, scale: number, places: number): bigint {
  if (places >= scale) return digits * 10n ** BigInt(places - scale);
  const unit = 10n ** BigInt(scale - places);
  const whole = digits / unit;
  const twice = (digits % unit) * 2n;
  return twice > unit || (twice === unit && whole % 2n === 1n) ? whole + 1n : whole;
}

/** `%.{places}f` of a finite number without its sign. */
export function fixed(size: number, places: number): string {
  chargeText(places + 400);
  const { digits, scale } = exactDigits(size);
  const text = roundTo(digits, scale, places)
    .toString()
    .padStart(places + 1, "0");
  return places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`;
}

/** `%.{places}e` of a finite number without its sign, as digits and exponent. */
function scientific(size: number, places: number): { digits: string; exponent: number } {
  chargeText(places + 400);
  if (size === 0) return { digits: "0".repeat(places + 1), exponent: 0 };
  const { digits, scale } = exactDigits(size);
  const length = digits.toString().length;
  let exponent = length - 1 - scale;
  let text = roundTo(digits, length - 1, places).toString();
  if (text.length > places + 1) {
    exponent++;
    text = text.slice(0, -1);
  }
  return { digits: text, exponent };
}

/** `round(value, places)` of a float. */
export function roundFloat(value: number, places: number): number {
  if (!Number.isFinite(value) || places > 330) return value;
  if (places < -330) return Math.sign(value) * 0;
  if (places >= 0) return Number(`${value < 0 || Object.is(value, -0) ? "-" : ""}${fixed(Math.abs(value), places)}`);
  const { digits, scale } = exactDigits(Math.abs(value));
  const rounded = Number(roundTo(digits, scale - places, 0) * 10n ** BigInt(-places));
  return value < 0 || Object.is(value, -0) ? -rounded : rounded;
}

/** `round(value, places)` of an integer. */
export function roundInt(value: Int, places: number): bigint {
  const n = BigInt(value);
  if (places >= 0) return n;
  if (places < -5000) return 0n;
  const rounded = roundTo(n < 0n ? -n : n, -places, 0) * 10n ** BigInt(-places);
  return n < 0n ? -rounded : rounded;
}

/** A float in one of the forms e, f, g, % (upper case: capitals), without sign. `precision` undefined: 6. */
export function floatForm(size: number, form: string, precision: number | undefined, alternate: boolean): string {
  const kind = form.toLowerCase();
  const upper = form !== kind;
  const cased = (text: string): string => (upper ? text.toUpperCase() : text);
  if (!Number.isFinite(size)) return cased(Number.isNaN(size) ? "nan" : "inf") + (kind === "%" ? "%" : "");
  const places = precision ?? 6;
  if (kind === "f") return fixed(size, places) + (alternate && places === 0 ? "." : "");
  if (kind === "%") return `${fixed(size * 100, places)}%`;
  if (kind === "e") return cased(exponential(scientific(size, places), alternate));
  return cased(general(size, places === 0 ? 1 : places, alternate, false));
}

function exponential({ digits, exponent }: { digits: string; exponent: number }, point: boolean): string {
  const mantissa = digits.length > 1 ? `${digits[0]}.${digits.slice(1)}` : digits + (point ? "." : "");
  return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

/** The form `g`; with `point` as `str.format` has it for no form: at least one digit behind the point. */
function general(size: number, digits: number, alternate: boolean, point: boolean): string {
  const rounded = scientific(size, digits - 1);
  const { exponent } = rounded;
  const trim = (text: string): string => (alternate || !text.includes(".") ? text : text.replace(/\.?0+$/, ""));
  if (exponent < -4 || exponent >= digits - (point ? 1 : 0)) {
    const kept = alternate ? rounded.digits : rounded.digits.replace(/(?<=.)0+$/, "");
    return exponential({ digits: kept, exponent }, alternate);
  }
  const text = trim(fixed(size, Math.max(0, digits - 1 - exponent)));
  return text.includes(".") || !(point || alternate) ? text : `${text}.${point ? "0" : ""}`;
}

const SPEC = /^(?:(.)?([<>=^]))?([-+ ])?(z)?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?([a-zA-Z%])?$/su;

/** `format(value, spec)`. */
export function formatValue(value: Value, spec: string): string {
  if (spec === "") return str(value);
  const text = textOf(value);
  const number = text === undefined ? numeric(value) : undefined;
  if (text === undefined && number === undefined)
    return typeError(`unsupported format string passed to ${typeName(value)}.__format__`);
  const match = SPEC.exec(spec);
  if (match === null) throw new ChatTemplateError(`Invalid format specifier '${spec}'`);
  const [, fill, align, sign, , alternate, zero, width = "0", group, precision, form] = match;
  const places = precision === undefined ? undefined : Number(precision);
  if (Number(width) > 1e8 || (places ?? 0) > 1e6)
    throw new ChatTemplateError("Too many decimal digits in format string");
  const pad: Pad = { fill: fill ?? (zero === undefined ? " " : "0"), align, width: Number(width) };
  if (text !== undefined) {
    if (sign !== undefined) throw new ChatTemplateError("Sign not allowed in string format specifier");
    if (form !== undefined && form !== "s")
      throw new ChatTemplateError(`Unknown format code '${form}' for object of type 'str'`);
    if (align === "=" || group !== undefined || alternate !== undefined)
      throw new ChatTemplateError("this format is not allowed for a string");
    const cut = places === undefined ? text : Array.from(text).slice(0, places).join("");
    return padded("", cut, { ...pad, align: align ?? "<" });
  }
  const [prefix, body] = numberBody(number as Int | PyFloat, form, places, alternate !== undefined);
  const negative = prefix.startsWith("-");
  const lead = negative ? prefix : (sign === "+" || sign === " " ? sign : "") + prefix;
  const side = align ?? (zero === undefined ? ">" : "=");
  const every = form !== undefined && "bxXo".includes(form) ? 4 : 3;
  const zeros = side === "=" && pad.fill === "0" ? pad.width - lead.length : 0;
  return padded(lead, group === undefined ? body : grouped(body, group, every, zeros), { ...pad, align: side });
}

interface Pad {
  readonly fill: string;
  readonly align: string | undefined;
  readonly width: number;
}

function padded(lead: string, body: string, { fill, align, width }: Pad): string {
  const missing = width - lead.length - textLength(body);
  if (missing <= 0) return lead + body;
  if (align === "=") return lead + repeat(fill, missing) + body;
  if (align === "<") return lead + body + repeat(fill, missing);
  if (align === "^") return repeat(fill, missing >> 1) + lead + body + repeat(fill, missing - (missing >> 1));
  return repeat(fill, missing) + lead + body;
}

/** Digits in groups; `zeros`: the least width, filled with zeros that are grouped as well. */
function grouped(body: string, separator: string, every: number, zeros: number): string {
  const [, digits = "", rest = ""] = /^([0-9a-fA-F]*)(.*)$/s.exec(body) ?? [];
  if (zeros > 10_000) throw new ChatTemplateError("Too many decimal digits in format string");
  let filled = digits;
  const width = (length: number) => length + Math.floor((length - 1) / every) + rest.length;
  while (width(filled.length) < zeros) filled = `0${filled}`;
  const head = filled.length % every || every;
  let out = filled.slice(0, head);
  for (let i = head; i < filled.length; i += every) out += separator + filled.slice(i, i + every);
  return out + rest;
}

/** Sign with prefix, and digits. */
function numberBody(
  value: Int | PyFloat,
  form: string | undefined,
  places: number | undefined,
  alternate: boolean,
): [string, string] {
  if (!(value instanceof PyFloat) && (form === undefined || "bcdoxXn".includes(form))) {
    if (places !== undefined) throw new ChatTemplateError("Precision not allowed in integer format specifier");
    return intForm(value, form ?? "d", alternate);
  }
  if (form !== undefined && !"eEfFgGn%".includes(form))
    throw new ChatTemplateError(`Unknown format code '${form}' for object of type 'float'`);
  const n = toFloat(value);
  const sign = n < 0 || Object.is(n, -0) ? "-" : "";
  const size = Math.abs(n);
  if (form !== undefined) return [sign, floatForm(size, form === "n" ? "g" : form, places, alternate)];
  if (places === undefined || !Number.isFinite(size)) return [sign, floatText(size)];
  return [sign, general(size, places === 0 ? 1 : places, alternate, true)];
}

/** Sign with prefix, and digits, of an integer. */
export function intForm(value: Int, form: string, alternate: boolean): [prefix: string, digits: string] {
  if (form === "c") {
    if (value < 0 || value > 0x10ffff) throw new ChatTemplateError("%c arg not in range(0x110000)");
    return ["", String.fromCodePoint(Number(value))];
  }
  const sign = value < 0 ? "-" : "";
  if (form === "d" || form === "n") return [sign, intText(value).slice(sign.length)];
  const [radix, prefix] = form === "b" ? [2, "0b"] : form === "o" ? [8, "0o"] : [16, form === "X" ? "0X" : "0x"];
  const digits = value.toString(radix).slice(sign.length);
  return [sign + (alternate ? prefix : ""), form === "X" ? digits.toUpperCase() : digits];
}
