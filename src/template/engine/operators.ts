/** The operators of expressions. */
import { escapeHtml } from "./html.ts";
import { chargeItems, chargeText } from "./limits.ts";
import { arithmetic, asIndex, negate, numeric, type Operator } from "./numbers.ts";
import { percentFormat } from "./string-format.ts";
import { repeat } from "./strings.ts";
import {
  isInt,
  isList,
  isText,
  itemsOf,
  Markup,
  Tuple,
  textOf,
  typeError,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";

function unsupported(operator: Operator, left: Value, right: Value): never {
  if (left instanceof Undefined) left.fail();
  if (right instanceof Undefined) right.fail();
  return typeError(`unsupported operand type(s) for ${operator}: '${typeName(left)}' and '${typeName(right)}'`);
}

export function add(left: Value, right: Value): Value {
  if (typeof left === "string" && typeof right === "string") {
    chargeText(left.length + right.length);
    return left + right;
  }
  if (isText(left) && isText(right)) {
    const text = escapeHtml(left).text + escapeHtml(right).text;
    chargeText(text.length);
    return new Markup(text);
  }
  if ((isList(left) && isList(right)) || (left instanceof Tuple && right instanceof Tuple)) {
    const a = itemsOf(left) ?? [];
    const b = itemsOf(right) ?? [];
    chargeItems(a.length + b.length);
    const items = [...a, ...b];
    return isList(left) ? items : new Tuple(items);
  }
  if (isText(left) && !(right instanceof Undefined))
    typeError(`can only concatenate str (not "${typeName(right)}") to str`);
  return calculate("+", left, right);
}

function calculate(operator: Operator, left: Value, right: Value): Value {
  const a = numeric(left);
  const b = numeric(right);
  return a === undefined || b === undefined ? unsupported(operator, left, right) : arithmetic(operator, a, b);
}

function multiply(left: Value, right: Value): Value {
  if (isInt(left) || typeof left === "boolean") {
    if (isText(right) || itemsOf(right) !== undefined) return multiply(right, left);
  } else if (isInt(right) || typeof right === "boolean") {
    const text = textOf(left);
    if (text !== undefined) {
      const repeated = repeat(text, asIndex(right));
      return left instanceof Markup ? new Markup(repeated) : repeated;
    }
    const items = itemsOf(left);
    if (items !== undefined) {
      const times = Math.max(0, asIndex(right));
      chargeItems(items.length * times);
      const repeated = items.length === 0 ? [] : Array.from({ length: times }, () => items).flat();
      return isList(left) ? repeated : new Tuple(repeated);
    }
  }
  return calculate("*", left, right);
}

export function binary(operator: Operator, left: Value, right: Value): Value {
  if (operator === "+") return add(left, right);
  if (operator === "*") return multiply(left, right);
  if (operator === "%" && isText(left)) return percentFormat(left, right);
  return calculate(operator, left, right);
}

/** `-value`, or `+value`. */
export function unary(operator: "-" | "+", value: Value): Value {
  const number = numeric(value);
  if (value instanceof Undefined) return value.fail();
  if (number === undefined) return typeError(`bad operand type for unary ${operator}: '${typeName(value)}'`);
  return operator === "-" ? negate(number) : number;
}
