/** Filters that order, group and compare items. */
import { ChatTemplateError } from "../errors.ts";
import { getItem } from "./attributes.ts";
import { type Builtin, builtin } from "./calls.ts";
import { compare, equal, keyOf, pairsOf } from "./dict.ts";
import { charge, chargeItems } from "./limits.ts";
import { add } from "./operators.ts";
import { iterate, listOf } from "./sequences.ts";
import { PREDICATES, split } from "./strings.ts";
import { isDict, isText, Once, Tuple, textOf, truthy, typeError, Undefined, type Value } from "./values.ts";

type Get = (item: Value) => Value;

/** `a.b.0` as the keys to follow. */
function parts(attribute: Value): Value[] {
  if (attribute === null) return [];
  const text = textOf(attribute);
  if (text === undefined) return [attribute];
  return split(text, ".", -1).map((part) => (PREDICATES["isdigit"]?.(part) === true ? Number(part) : part));
}

/** Gets an attribute or item by a path, with a default for absent ones (null: none). */
export function attributeGetter(attribute: Value, otherwise: Value, after: Get = (item) => item): Get {
  const path = parts(attribute);
  return (item) => {
    let value = item;
    for (const part of path) {
      value = getItem(value, part);
      if (otherwise !== null && value instanceof Undefined) value = otherwise;
    }
    return after(value);
  };
}

const lower: Get = (value) => (isText(value) ? (textOf(value) as string).toLowerCase() : value);
const caseOf = (sensitive: Value): Get | undefined => (truthy(sensitive) ? undefined : lower);

/** A stable sort by keys, which are computed once. Fails where Python can't compare them. */
function sortedBy(values: readonly Value[], key: Get, reverse: boolean): Value[] {
  chargeItems(values.length * 4);
  const keyed = values.map((value) => ({ value, key: key(value) }));
  const order = (a: { key: Value }, b: { key: Value }): number => {
    const result = compare(a.key, b.key, "<");
    return Number.isNaN(result) ? 0 : result;
  };
  // the sort of Python keeps the order of equal items when it is reversed, too
  return keyed.sort(reverse ? (a, b) => order(b, a) : order).map(({ value }) => value);
}

function sort(value: Value, reverse: Value, sensitive: Value, attribute: Value): Value {
  const text = textOf(attribute);
  const paths: Value[] = text === undefined ? [attribute] : split(text, ",", -1);
  const getters = paths.map((path) => attributeGetter(path, null, caseOf(sensitive)));
  const key: Get = (item) => getters.map((get) => get(item));
  return sortedBy(listOf(value), key, truthy(reverse));
}

function dictsort(value: Value, sensitive: Value, by: Value, reverse: Value): Value {
  const at = by === "key" ? 0 : by === "value" ? 1 : undefined;
  if (at === undefined) throw new ChatTemplateError('You can only sort by either "key" or "value"');
  if (value instanceof Undefined) value.fail();
  if (!isDict(value)) typeError("dictsort wants a mapping");
  const key = caseOf(sensitive) ?? ((item: Value) => item);
  const pairs = Array.from(pairsOf(value), (pair) => new Tuple(pair));
  return sortedBy(pairs, (pair) => key((pair as Tuple).items[at] as Value), truthy(reverse));
}

function* unique(value: Value, sensitive: Value, attribute: Value): Iterator<Value> {
  const get = attributeGetter(attribute, null, caseOf(sensitive));
  const seen = new Set<unknown>();
  const source = iterate(value);
  for (let step = source.next(); step.done !== true; step = source.next()) {
    charge(1);
    const key = keyOf(get(step.value));
    if (seen.has(key)) continue;
    seen.add(key);
    yield step.value;
  }
}

function extreme(value: Value, sensitive: Value, attribute: Value, sign: 1 | -1): Value {
  const get = attributeGetter(attribute, null, caseOf(sensitive));
  let best: { value: Value; key: Value } | undefined;
  for (const item of listOf(value)) {
    charge(1);
    const key = get(item);
    if (best === undefined || compare(key, best.key, sign > 0 ? ">" : "<") * sign > 0) best = { value: item, key };
  }
  return best === undefined ? new Undefined("No aggregated item, sequence was empty.") : best.value;
}

function groupby(value: Value, attribute: Value, otherwise: Value, sensitive: Value): Value {
  const key = attributeGetter(attribute, otherwise, caseOf(sensitive));
  const plain = attributeGetter(attribute, otherwise);
  const groups: { key: Value; list: Value[] }[] = [];
  for (const item of sortedBy(listOf(value), key, false)) {
    const own = key(item);
    const last = groups.at(-1);
    if (last !== undefined && equal(last.key, own)) last.list.push(item);
    else groups.push({ key: own, list: [item] });
  }
  return groups.map(
    ({ key: own, list }) => new Tuple([truthy(sensitive) ? own : plain(list[0] as Value), list], ["grouper", "list"]),
  );
}

function sum(value: Value, attribute: Value, start: Value): Value {
  if (isText(start)) typeError("sum() can't sum strings [use ''.join(seq) instead]");
  const get = attributeGetter(attribute, null);
  let total: Value = start;
  const source = iterate(value);
  for (let step = source.next(); step.done !== true; step = source.next()) {
    charge(1);
    total = add(total, get(step.value));
  }
  return total;
}

export const ORDER_FILTERS: readonly (readonly [string, Builtin])[] = [
  [
    "sort",
    builtin("sort(value, reverse=false, case_sensitive=false, attribute=none)", (...a) =>
      sort(...(a as [Value, Value, Value, Value])),
    ),
  ],
  [
    "dictsort",
    builtin("dictsort(value, case_sensitive=false, by='key', reverse=false)", (...a) =>
      dictsort(...(a as [Value, Value, Value, Value])),
    ),
  ],
  [
    "unique",
    builtin(
      "unique(value, case_sensitive=false, attribute=none)",
      (...a) => new Once(unique(...(a as [Value, Value, Value]))),
    ),
  ],
  [
    "min",
    builtin("min(value, case_sensitive=false, attribute=none)", (v, c, a) =>
      extreme(v as Value, c as Value, a as Value, -1),
    ),
  ],
  [
    "max",
    builtin("max(value, case_sensitive=false, attribute=none)", (v, c, a) =>
      extreme(v as Value, c as Value, a as Value, 1),
    ),
  ],
  [
    "groupby",
    builtin("groupby(value, attribute, default=none, case_sensitive=false)", (...a) =>
      groupby(...(a as [Value, Value, Value, Value])),
    ),
  ],
  ["sum", builtin("sum(value, attribute=none, start=0)", (...a) => sum(...(a as [Value, Value, Value])))],
];
