/** Keys of dicts, and the comparisons of Python: deep equality, and an order for what has one. */
import { charge, chargeScan, deeper } from "./limits.ts";
import { numeric } from "./numbers.ts";
import { Range, View } from "./objects.ts";
import {
  type Dict,
  isDict,
  isList,
  type Key,
  Markup,
  PyDict,
  PyFloat,
  PyObject,
  Tuple,
  textOf,
  typeError,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";

/** All undefined values are one key. */
const UNDEFINED_KEY: object = { undefined: true };
/** Begins the keys that stand for tuples; no text of a JSON document is likely to, and what would follow is only a clash of keys. */
const TUPLE_MARK = "\ud800\u0000(";

/** The Map key of a value: equal values have the same. Throws for lists and dicts, as they have no hash. */
export function keyOf(value: Value): Key {
  if (typeof value === "string" || typeof value === "number" || typeof value === "bigint" || value === null)
    return value;
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value instanceof Markup) return value.text;
  if (value instanceof PyFloat) {
    const { value: n } = value;
    return Number.isInteger(n) && !Number.isSafeInteger(n) ? BigInt(n) : n === 0 ? 0 : n;
  }
  if (value instanceof Undefined) return UNDEFINED_KEY;
  if (value instanceof Tuple)
    return (
      TUPLE_MARK + deeper(() => value.items.map((item) => `${typeof keyOf(item)}:${partOfKey(item)}`).join("\u0000"))
    );
  if (value instanceof Range) return `${TUPLE_MARK}range ${value.start} ${value.step} ${value.size}`;
  if (value instanceof PyObject && !(value instanceof View)) return value;
  return typeError(`unhashable type: '${typeName(value)}'`);
}

const objectNumbers = new WeakMap<object, number>();
let objects = 0;
function partOfKey(item: Value): string {
  charge(16);
  const key = keyOf(item);
  if (typeof key !== "object" || key === null) return String(key);
  let number = objectNumbers.get(key);
  if (number === undefined) objectNumbers.set(key, (number = ++objects));
  return String(number);
}

/** Sets a key of a dict that is being made. */
export function setKey(dict: PyDict, key: Value, value: Value): void {
  const canonical = keyOf(key);
  if (canonical !== key && !dict.has(canonical)) dict.originals.set(canonical, key);
  dict.set(canonical, value);
}

/** The key as it was given. */
export const originalKey = (dict: Dict, key: Key): Value =>
  (dict instanceof PyDict ? dict.originals.get(key) : undefined) ?? (key as Value);

export function* keysOf(dict: Dict): Iterator<Value> & Iterable<Value> {
  for (const key of dict.keys()) yield originalKey(dict, key);
}

export function* pairsOf(dict: Dict): Iterable<readonly [key: Value, value: Value]> {
  for (const [key, value] of dict) yield [originalKey(dict, key), value];
}

/** As Python's `==`. */
export function equal(a: Value, b: Value): boolean {
  if (typeof a === "string" && a.length > 64) charge(a.length >> 8);
  if (a === b) return true;
  charge(1);
  if (typeof a === "string" && typeof b === "string") return false;
  if (a === null || b === null) return false;
  const left = numeric(a);
  if (left !== undefined) {
    const right = numeric(b);
    return right !== undefined && compareNumbers(left, right) === 0;
  }
  const text = textOf(a);
  if (text !== undefined) return text === textOf(b);
  if (isList(a)) return isList(b) && equalItems(a, b);
  if (a instanceof Tuple) return b instanceof Tuple && equalItems(a.items, b.items);
  if (isDict(a)) return isDict(b) && equalDicts(a, b);
  if (a instanceof Undefined) return b instanceof Undefined;
  if (a instanceof Range && b instanceof Range) return keyOf(a) === keyOf(b);
  if (a instanceof View && b instanceof View) return equalViews(a, b);
  return false;
}

function equalItems(a: readonly Value[], b: readonly Value[]): boolean {
  charge(8);
  return a.length === b.length && deeper(() => a.every((item, i) => equal(item, b[i] as Value)));
}

function equalDicts(a: Dict, b: Dict): boolean {
  charge(8);
  if (a.size !== b.size) return false;
  return deeper(() => {
    for (const [key, value] of a) {
      const other = b.get(key);
      if (other === undefined || !equal(value, other)) return false;
    }
    return true;
  });
}

function equalViews(a: View, b: View): boolean {
  if (a.kind === "values" || b.kind === "values" || a.dict.size !== b.dict.size) return false;
  if (a.kind === "items") return b.kind === "items" && equalDicts(a.dict, b.dict);
  return b.kind === "keys" && [...a.dict.keys()].every((key) => b.dict.has(key));
}

/** Order of texts by code point; JavaScript's own is by UTF-16 units. */
export function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  chargeScan(length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    const high = (unit: number) => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit);
    return high(x) - high(y);
  }
  return a.length - b.length;
}

/** NaN where one of them is none. */
export function compareNumbers(a: number | bigint | PyFloat, b: number | bigint | PyFloat): number {
  const x = a instanceof PyFloat ? a.value : a;
  const y = b instanceof PyFloat ? b.value : b;
  return x < y ? -1 : x > y ? 1 : Number.isNaN(x) || Number.isNaN(y) ? Number.NaN : 0;
}

/** Below, above or zero, as Python's `<` and `>` have it; NaN: neither. Throws for kinds without an order. */
export function compare(a: Value, b: Value, operator = "<"): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (a instanceof Undefined) a.fail();
  if (b instanceof Undefined) b.fail();
  charge(1);
  const left = numeric(a);
  const right = numeric(b);
  if (left !== undefined && right !== undefined) return compareNumbers(left, right);
  const text = textOf(a);
  const other = textOf(b);
  if (text !== undefined && other !== undefined) return compareTexts(text, other);
  if (isList(a) && isList(b)) return compareItems(a, b, operator);
  if (a instanceof Tuple && b instanceof Tuple) return compareItems(a.items, b.items, operator);
  return typeError(`'${operator}' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`);
}

function compareItems(a: readonly Value[], b: readonly Value[], operator: string): number {
  return deeper(() => {
    for (let i = 0; i < Math.min(a.length, b.length); i++) {
      const x = a[i] as Value;
      const y = b[i] as Value;
      if (!equal(x, y)) return compare(x, y, operator);
    }
    return a.length - b.length;
  });
}
