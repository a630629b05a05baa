/** Filters on lists, dicts, numbers and single values. */
import { ChatTemplateError } from "../errors.ts";
import { getAttribute } from "./attributes.ts";
import { type Builtin, builtin } from "./calls.ts";
import { pairsOf } from "./dict.ts";
import { attributeGetter } from "./filters-order.ts";
import { roundFloat, roundInt } from "./format-spec.ts";
import { dumps } from "./json.ts";
import { charge, chargeItems, chargeText, MAX_TEXT } from "./limits.ts";
import { arithmetic, asIndex, int, negate, numeric, parseFloatText, toFloat, toInt } from "./numbers.ts";
import { iterate, lengthOf, listOf, reversedItems, slice } from "./sequences.ts";
import { str } from "./text.ts";
import {
  isDict,
  isText,
  itemsOf,
  Markup,
  Once,
  PyFloat,
  Tuple,
  textOf,
  truthy,
  typeError,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";

function first(value: Value): Value {
  const step = iterate(value).next();
  return step.done === true ? new Undefined("No first item, sequence was empty.") : step.value;
}

function last(value: Value): Value {
  if (value instanceof Undefined) return new Undefined("No last item, sequence was empty.");
  const items = itemsOf(value) ?? reversedItems(value)?.reverse();
  if (items === undefined) return typeError(`'${typeName(value)}' object is not reversible`);
  const found = items.at(-1);
  return found === undefined ? new Undefined("No last item, sequence was empty.") : found;
}

function random(value: Value): Value {
  const length = lengthOf(value);
  if (length === 0) return new Undefined("No random item, sequence was empty.");
  return listOf(value)[Math.floor(Math.random() * length)] as Value;
}

function reverse(value: Value): Value {
  if (isText(value)) return slice(value, null, null, -1);
  const items = reversedItems(value);
  if (items !== undefined) return new Once(items[Symbol.iterator](), "list_reverseiterator");
  return [...listOf(value)].reverse();
}

function join(value: Value, separator: Value, attribute: Value): string {
  const get = attribute === null ? (item: Value) => item : attributeGetter(attribute, null);
  const parts: string[] = [];
  const source = iterate(value);
  const between = str(separator);
  let length = 0;
  for (let step = source.next(); step.done !== true; step = source.next()) {
    const part = str(get(step.value));
    charge(1);
    length += part.length + between.length;
    if (length > MAX_TEXT) chargeText(length);
    parts.push(part);
  }
  chargeText(length);
  return parts.join(between);
}

function* items(value: Value): Iterator<Value> {
  if (value instanceof Undefined) return;
  if (!isDict(value)) return typeError("Can only get item pairs from a mapping.");
  for (const pair of pairsOf(value)) {
    charge(1);
    yield new Tuple(pair);
  }
}

function* slices(value: Value, count: Value, fill: Value): Iterator<Value> {
  const all = listOf(value);
  const n = asIndex(count);
  if (n === 0) throw new ChatTemplateError("integer division or modulo by zero");
  const size = Math.floor(all.length / n);
  const extra = all.length - size * n;
  let offset = 0;
  for (let i = 0; i < n; i++) {
    const start = offset + i * size;
    if (i < extra) offset++;
    const part = all.slice(start, offset + (i + 1) * size);
    chargeItems(part.length + 1);
    if (fill !== null && i >= extra) part.push(fill);
    yield part;
  }
}

function* batches(value: Value, count: Value, fill: Value): Iterator<Value> {
  const size = asIndex(count);
  let batch: Value[] = [];
  const source = iterate(value);
  for (let step = source.next(); step.done !== true; step = source.next()) {
    charge(1);
    if (batch.length === size) {
      yield batch;
      batch = [];
    }
    batch.push(step.value);
  }
  if (batch.length === 0) return;
  if (fill !== null && batch.length < size) {
    chargeItems(size);
    while (batch.length < size) batch.push(fill);
  }
  yield batch;
}

function round(value: Value, precision: Value, method: Value): Value {
  if (method !== "common" && method !== "ceil" && method !== "floor")
    throw new ChatTemplateError("method must be common, ceil or floor");
  const number = numeric(value);
  if (number === undefined) {
    if (value instanceof Undefined) return value.fail();
    return typeError(`type ${typeName(value)} doesn't define __round__ method`);
  }
  if (method === "common") {
    const places = asIndex(precision);
    return number instanceof PyFloat ? new PyFloat(roundFloat(number.value, places)) : int(roundInt(number, places));
  }
  const factor = arithmetic("**", 10, numeric(precision) ?? typeError("precision must be a number"));
  const scaled = arithmetic("*", number, factor as number);
  const whole =
    scaled instanceof PyFloat
      ? toInt(new PyFloat(method === "ceil" ? Math.ceil(scaled.value) : Math.floor(scaled.value)))
      : scaled;
  return arithmetic("/", whole as number, factor as number);
}

function abs(value: Value): Value {
  const number = numeric(value);
  if (number === undefined) return typeError(`bad operand type for abs(): '${typeName(value)}'`);
  if (number instanceof PyFloat) return new PyFloat(Math.abs(number.value));
  return number < 0 ? negate(number) : number;
}

/** Runs it; another value where Python raises an error that the filters forgive. */
function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof ChatTemplateError && error.constructor === ChatTemplateError) return undefined;
    throw error;
  }
}

function toIntFilter(value: Value, otherwise: Value, base: Value): Value {
  if (value instanceof Undefined) return value.fail();
  const direct = attempt(() => toInt(value, textOf(value) === undefined ? undefined : asIndex(base)));
  if (direct !== undefined) return direct;
  const text = textOf(value);
  if (value instanceof PyFloat && !Number.isNaN(value.value))
    throw new ChatTemplateError("cannot convert float infinity to integer");
  const parsed = text === undefined ? undefined : parseFloatText(text);
  return parsed === undefined || !Number.isFinite(parsed) ? otherwise : toInt(new PyFloat(parsed));
}

function toFloatFilter(value: Value, otherwise: Value): Value {
  if (value instanceof Undefined) return value.fail();
  const text = textOf(value);
  if (text !== undefined) {
    const parsed = parseFloatText(text);
    return parsed === undefined ? otherwise : new PyFloat(parsed);
  }
  const number = numeric(value);
  return number === undefined ? otherwise : new PyFloat(toFloat(number));
}

function byName(value: Value, name: Value): Value {
  if (isDict(value) && typeof name === "string" && value.has(name)) {
    // an attribute only, never an item
    const found = getAttribute(new Map(), name);
    return found instanceof Undefined ? found : getAttribute(value, name);
  }
  return typeof name === "string" ? getAttribute(value, name) : typeError("attribute name must be string");
}

const otherwise = builtin("default(value, default_value='', boolean=false)", (value, instead, boolean) =>
  value instanceof Undefined || (truthy(boolean as Value) && !truthy(value as Value))
    ? (instead as Value)
    : (value as Value),
);
const length = builtin("length(value, /)", (value) => lengthOf(value as Value));

export const COLLECTION_FILTERS: readonly (readonly [string, Builtin])[] = [
  ["default", otherwise],
  ["d", otherwise],
  ["length", length],
  ["count", length],
  ["first", builtin("first(seq)", (value) => first(value as Value))],
  ["last", builtin("last(seq)", (value) => last(value as Value))],
  ["random", builtin("random(seq)", (value) => random(value as Value))],
  ["list", builtin("list(value)", (value) => listOf(value as Value))],
  ["items", builtin("items(value)", (value) => new Once(items(value as Value)))],
  ["reverse", builtin("reverse(value)", (value) => reverse(value as Value))],
  ["join", builtin("join(value, d='', attribute=none)", (v, d, a) => join(v as Value, d as Value, a as Value))],
  [
    "slice",
    builtin("slice(value, slices, fill_with=none)", (v, n, f) => new Once(slices(v as Value, n as Value, f as Value))),
  ],
  [
    "batch",
    builtin(
      "batch(value, linecount, fill_with=none)",
      (v, n, f) => new Once(batches(v as Value, n as Value, f as Value)),
    ),
  ],
  [
    "round",
    builtin("round(value, precision=0, method='common')", (v, p, m) =>
      round(v as Value, p as Value, textOf(m as Value) ?? null),
    ),
  ],
  ["abs", builtin("abs(x, /)", (value) => abs(value as Value))],
  ["int", builtin("int(value, default=0, base=10)", (v, d, b) => toIntFilter(v as Value, d as Value, b as Value))],
  [
    "float",
    builtin("float(value, default=none)", (v, d) =>
      toFloatFilter(v as Value, d === null ? new PyFloat(0) : (d as Value)),
    ),
  ],
  ["attr", builtin("attr(obj, name)", (value, name) => byName(value as Value, name as Value))],
  [
    "tojson",
    builtin("tojson(x, ensure_ascii=false, indent=none, separators=none, sort_keys=false)", (x, a, i, s, k) =>
      dumps(x as Value, a as Value, i as Value, s as Value, k as Value),
    ),
  ],
  ["string", builtin("string(s, /)", (value) => (value instanceof Markup ? value : str(value as Value)))],
  ["safe", builtin("safe(value)", (value) => (value instanceof Markup ? value : new Markup(str(value as Value))))],
];
