/** Python's numbers: exact integers, floats with their own printing, floor division, and what `int()` and `float()` read. */
import { ChatTemplateError } from "../errors.ts";
import { chargeScan, MAX_BITS } from "./limits.ts";
import { isInt, isNumber, PyFloat, textOf, typeError, typeName, type Value } from "./values.ts";
import { trimmed } from "./whitespace.ts";

export type Int = number | bigint;
export type Operator = "+" | "-" | "*" | "/" | "//" | "%" | "**";

const SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** An integer in its one form. Throws beyond MAX_BITS. */
export function int(value: bigint): Int {
  if (value <= SAFE && value >= -SAFE) return Number(value);
  if (bitLength(value) > MAX_BITS) throw new ChatTemplateError("the template makes an integer that is too large");
  return value;
}

export const bitLength = (value: bigint): number => {
  const hex = (value < 0n ? -value : value).toString(16);
  return value === 0n ? 0 : (hex.length - 1) * 4 + (32 - Math.clz32(Number.parseInt(hex[0] ?? "0", 16)));
};

/** What a number counts as: true is 1. Undefined for others. */
export function numeric(value: Value): Int | PyFloat | undefined {
  if (typeof value === "boolean") return value ? 1 : 0;
  return isInt(value) || value instanceof PyFloat ? value : undefined;
}

/** An integer that is an index, a width or a count; `what` names it in the error. */
export function asIndex(value: Value, what = "an integer"): number {
  const n = typeof value === "boolean" ? Number(value) : value;
  if (typeof n === "number") return n;
  if (typeof n === "bigint") return n > 0n ? Number.MAX_SAFE_INTEGER : -Number.MAX_SAFE_INTEGER;
  return typeError(`'${typeName(value)}' object cannot be interpreted as ${what}`);
}

export function toFloat(value: Int | PyFloat): number {
  if (value instanceof PyFloat) return value.value;
  const n = Number(value);
  if (!Number.isFinite(n)) throw new ChatTemplateError("integer too large to convert to float");
  return n;
}

export function arithmetic(operator: Operator, left: Int | PyFloat, right: Int | PyFloat): Value {
  if (left instanceof PyFloat || right instanceof PyFloat || operator === "/") {
    if (operator === "/" && isInt(left) && isInt(right)) return divide(left, right);
    return floats(operator, toFloat(left), toFloat(right));
  }
  return integers(operator, left, right);
}

function divide(left: Int, right: Int): PyFloat {
  if (Number(right) === 0) throw new ChatTemplateError("division by zero");
  if (typeof left === "number" && typeof right === "number") return new PyFloat(left / right);
  // a quotient with 64 significant bits, of which the last one tells whether there is more
  const a = BigInt(left);
  const b = BigInt(right);
  const shift = 66 - (bitLength(a) - bitLength(b));
  const top = (a < 0n ? -a : a) << BigInt(Math.max(shift, 0));
  const bottom = (b < 0n ? -b : b) << BigInt(Math.max(-shift, 0));
  const quotient = (top / bottom) | (top % bottom === 0n ? 0n : 1n);
  const value = Number(quotient) * 2 ** -shift;
  if (!Number.isFinite(value)) throw new ChatTemplateError("integer division result too large for a float");
  return new PyFloat(a < 0n !== b < 0n ? -value : value);
}

function integers(operator: Operator, left: Int, right: Int): Int | PyFloat {
  if (typeof left === "number" && typeof right === "number") {
    const fast = smallIntegers(operator, left, right);
    if (fast !== undefined && Number.isSafeInteger(fast)) return fast === 0 ? 0 : fast;
  }
  const a = BigInt(left);
  const b = BigInt(right);
  switch (operator) {
    case "+":
      return int(a + b);
    case "-":
      return int(a - b);
    case "*":
      return int(a * b);
    case "//":
    case "%": {
      if (b === 0n) throw new ChatTemplateError("integer division or modulo by zero");
      let quotient = a / b;
      if (a % b !== 0n && a < 0n !== b < 0n) quotient -= 1n;
      return int(operator === "//" ? quotient : a - quotient * b);
    }
    default:
      if (b < 0n) return floats("**", toFloat(left), toFloat(right));
      if (bitLength(a) * Number(b) > MAX_BITS * 2 && a !== 1n && a !== -1n && a !== 0n)
        throw new ChatTemplateError("the template makes an integer that is too large");
      return int(a ** (a === 1n || a === 0n || a === -1n ? (b === 0n ? 0n : 2n - (b % 2n)) : b));
  }
}

/** Undefined: the result needs BigInt. */
function smallIntegers(operator: Operator, a: number, b: number): number | undefined {
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "//": {
      const whole = b === 0 ? Number.NaN : a - mod(a, b);
      return Number.isSafeInteger(whole) ? whole / b : undefined;
    }
    case "%":
      return b === 0 ? undefined : mod(a, b);
    default:
      return undefined;
  }
}

/** The remainder with the sign of the divisor. */
function mod(a: number, b: number): number {
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
}

function floats(operator: Operator, a: number, b: number): PyFloat {
  switch (operator) {
    case "+":
      return new PyFloat(a + b);
    case "-":
      return new PyFloat(a - b);
    case "*":
      return new PyFloat(a * b);
    case "**":
      return new PyFloat(power(a, b));
  }
  if (b === 0)
    throw new ChatTemplateError(operator === "/" ? "float division by zero" : "float floor division by zero");
  if (operator === "/") return new PyFloat(a / b);
  const rest = a % b === 0 ? (b < 0 ? -0 : 0) : mod(a, b);
  if (operator === "%") return new PyFloat(Number.isFinite(a) && Math.abs(b) === Infinity && rest !== a ? b : rest);
  const quotient = (a - rest) / b;
  if (quotient === 0) return new PyFloat(a / b < 0 || Object.is(a / b, -0) ? -0 : 0);
  const floor = Math.floor(quotient);
  return new PyFloat(quotient - floor > 0.5 ? floor + 1 : floor);
}

function power(a: number, b: number): number {
  if (a === 1 || b === 0) return 1;
  if (a === -1 && Math.abs(b) === Infinity) return 1;
  if (a === 0 && b < 0) throw new ChatTemplateError("0.0 cannot be raised to a negative power");
  if (a < 0 && Number.isFinite(a) && Number.isFinite(b) && !Number.isInteger(b))
    throw new ChatTemplateError("the template makes a complex number");
  const result = Number.isInteger(b) && Math.abs(b) <= 2048 && Number.isFinite(a) ? exactPower(a, b) : a ** b;
  if (!Number.isFinite(result) && Number.isFinite(a) && Number.isFinite(b))
    throw new ChatTemplateError("(34, 'Numerical result out of range')");
  return result;
}

/** A power with an integer exponent, rounded once: the `**` of JavaScript may be off by one digit. */
function exactPower(a: number, b: number): number {
  const rough = a ** b;
  if (Number.isInteger(rough) && Math.abs(rough) <= Number.MAX_SAFE_INTEGER) return rough;
  if (!Number.isFinite(rough) || Math.abs(rough) < 1e-290) return rough;
  let mantissa = Math.abs(a);
  let exponent = 0;
  for (; !Number.isInteger(mantissa); exponent--) mantissa *= 2;
  const power = BigInt(mantissa) ** BigInt(Math.abs(b));
  const shift = 1n << BigInt(-exponent * Math.abs(b));
  const size = b < 0 ? divide(shift, power) : divide(power, shift);
  return rough < 0 ? -size.value : size.value;
}

export function negate(value: Int | PyFloat): Int | PyFloat {
  if (value instanceof PyFloat) return new PyFloat(-value.value);
  return typeof value === "bigint" ? int(-value) : 0 - value;
}

/** `repr()` of a float: the shortest digits that give it back, with an exponent below 1e-4 and from 1e16 on. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (Object.is(value, -0)) return "-0.0";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) {
    const [digits = "", exponent = ""] = value.toExponential().split("e");
    const sign = exponent[0] === "-" ? "-" : "+";
    return `${digits}e${sign}${exponent.slice(1).padStart(2, "0")}`;
  }
  const text = String(value);
  return text.includes(".") ? text : `${text}.0`;
}

export function intText(value: Int): string {
  if (typeof value === "number") return String(value);
  const text = value.toString();
  if (text.length > 4300) throw new ChatTemplateError("Exceeds the limit (4300 digits) for integer string conversion");
  return text;
}

const DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz";

/** `int(text, base)`; undefined: not such a number. */
export function parseInteger(text: string, base: number): Int | undefined {
  if (text.length > 10_000) return undefined;
  let s = trimmed(text).toLowerCase();
  const negative = s[0] === "-";
  if (negative || s[0] === "+") s = s.slice(1);
  const prefix = { 2: "0b", 8: "0o", 16: "0x" }[base];
  let radix = base;
  if (base === 0) {
    radix = s.startsWith("0x") ? 16 : s.startsWith("0o") ? 8 : s.startsWith("0b") ? 2 : 10;
    if (radix === 10 && /^0[0_]*[1-9]/.test(s)) return undefined;
  }
  if ((prefix !== undefined && s.startsWith(prefix)) || radix !== (base || 10)) {
    s = s.slice(2);
    if (s[0] === "_") s = s.slice(1);
  }
  s = plainDigits(s);
  if (s === "" || s.length > 4300 || !/^[0-9a-z]+(?:_[0-9a-z]+)*$/.test(s)) return undefined;
  let value = 0n;
  for (const c of s) {
    if (c === "_") continue;
    const digit = DIGITS.indexOf(c);
    if (digit >= radix) return undefined;
    value = value * BigInt(radix) + BigInt(digit);
  }
  return int(negative ? -value : value);
}

/** Decimal digits of other scripts become ASCII ones. */
function plainDigits(text: string): string {
  return text.replace(/\p{Nd}/gu, (digit) => {
    const code = digit.codePointAt(0) ?? 0;
    if (code < 128) return digit;
    let zero = code;
    while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1)) && code - zero < 9) zero--;
    return String(code - zero);
  });
}

/** `float(text)`; undefined: not such a number. */
export function parseFloatText(text: string): number | undefined {
  chargeScan(text.length * 16);
  const s = plainDigits(trimmed(text)).toLowerCase();
  const special = /^([+-]?)(inf|infinity|nan)$/.exec(s);
  if (special !== null) return special[2] === "nan" ? Number.NaN : special[1] === "-" ? -Infinity : Infinity;
  if (!/^[+-]?(?:\d+(?:_\d+)*\.?(?:\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:e[+-]?\d+(?:_\d+)*)?$/.test(s)) return undefined;
  return Number(s.replaceAll("_", ""));
}

/** `int(value)` of a number or text. Throws where Python does. */
export function toInt(value: Value, base?: number): Int {
  const text = textOf(value);
  if (text !== undefined) {
    const parsed = parseInteger(text, base ?? 10);
    if (parsed === undefined) throw new ChatTemplateError(`invalid literal for int() with base ${base ?? 10}`);
    return parsed;
  }
  if (!isNumber(value)) return typeError(`int() argument must be a string or a real number, not '${typeName(value)}'`);
  const n = numeric(value);
  if (n instanceof PyFloat) {
    if (!Number.isFinite(n.value)) throw new ChatTemplateError("cannot convert float infinity or NaN to integer");
    const whole = Math.trunc(n.value);
    return Number.isSafeInteger(whole) ? (whole === 0 ? 0 : whole) : int(BigInt(whole));
  }
  return n ?? 0;
}
