/** All tests, by name. */
import { type Builtin, builtin } from "./calls.ts";
import { compare, equal, keyOf } from "./dict.ts";
import { FILTER_NAMES } from "./filter-names.ts";
import { chargeScan } from "./limits.ts";
import { Range, View } from "./objects.ts";
import { binary } from "./operators.ts";
import { contains, isIterable } from "./sequences.ts";
import { PREDICATES } from "./strings.ts";
import { str } from "./text.ts";
import {
  isDict,
  isInt,
  isNumber,
  isText,
  itemsOf,
  Markup,
  Once,
  PyFloat,
  PyObject,
  Undefined,
  type Value,
} from "./values.ts";

type Test = (value: Value, other: Value) => boolean;

const remainder = (value: Value, by: Value): Value => binary("%", value, by);

/** As Python's `is`; equal small values are the same there. */
function same(a: Value, b: Value): boolean {
  if (a === b) return true;
  if (a instanceof Undefined || b instanceof Undefined) return false;
  return isText(a) && isText(b) && typeof a === typeof b && equal(a, b);
}

const isSequence = (value: Value): boolean =>
  isText(value) ||
  itemsOf(value) !== undefined ||
  isDict(value) ||
  value instanceof Undefined ||
  value instanceof Range;

function holds(predicate: string, text: string): boolean {
  chargeScan(text.length);
  return PREDICATES[predicate]?.(text) === true;
}

const UNARY: Readonly<Record<string, (value: Value) => boolean>> = {
  odd: (value) => equal(remainder(value, 2), 1),
  even: (value) => equal(remainder(value, 2), 0),
  defined: (value) => !(value instanceof Undefined),
  undefined: (value) => value instanceof Undefined,
  none: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  false: (value) => value === false,
  true: (value) => value === true,
  integer: isInt,
  float: (value) => value instanceof PyFloat,
  lower: (value) => holds("islower", str(value)),
  upper: (value) => holds("isupper", str(value)),
  string: isText,
  mapping: isDict,
  number: isNumber,
  sequence: isSequence,
  iterable: (value) => isIterable(value) || value instanceof Once || value instanceof View,
  callable: (value) => (value instanceof PyObject && value.callable) || value instanceof Undefined,
  escaped: (value) => value instanceof Markup,
  filter: (value) => FILTER_NAMES.has(keyOf(value) as string),
  test: (value) => TESTS.has(keyOf(value) as string),
};

const above: Test = (a, b) => compare(a, b, ">") > 0;
const below: Test = (a, b) => compare(a, b, "<") < 0;
const different: Test = (a, b) => !equal(a, b);

const BINARY: Readonly<Record<string, Test>> = {
  divisibleby: (value, by) => equal(remainder(value, by), 0),
  sameas: same,
  in: (value, container) => contains(container, value),
  "==": equal,
  eq: equal,
  equalto: equal,
  "!=": different,
  ne: different,
  ">": above,
  gt: above,
  greaterthan: above,
  ">=": (a, b) => compare(a, b, ">=") >= 0,
  ge: (a, b) => compare(a, b, ">=") >= 0,
  "<": below,
  lt: below,
  lessthan: below,
  "<=": (a, b) => compare(a, b, "<=") <= 0,
  le: (a, b) => compare(a, b, "<=") <= 0,
};

export const TESTS: ReadonlyMap<string, Builtin> = new Map<string, Builtin>([
  ...Object.entries(UNARY).map(([name, test]): [string, Builtin] => [
    name,
    builtin(`${name}(value)`, (value) => test(value as Value)),
  ]),
  ...Object.entries(BINARY).map(([name, test]): [string, Builtin] => {
    const method = builtin("test(value, other)", (value, other) => test(value as Value, other as Value));
    return [name, { ...method, signature: { ...method.signature, name } }];
  }),
]);
