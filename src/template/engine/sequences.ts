/** What Python does with anything that has items: iterate, count, index, slice, search. */
import { ChatTemplateError } from "../errors.ts";
import { equal, keyOf, keysOf } from "./dict.ts";
import { charge, chargeItems, chargeScan, chargeText, MAX_ITEMS } from "./limits.ts";
import { asIndex } from "./numbers.ts";
import { Range, View } from "./objects.ts";
import {
  isDict,
  isList,
  itemsOf,
  Markup,
  PyObject,
  Tuple,
  textOf,
  typeError,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";

const SURROGATE = /[\ud800-\udfff]/;

/** Code points of a text. */
export function codePoints(text: string): string[] {
  chargeItems(text.length);
  return Array.from(text);
}

/** `len()` of a text: code points. */
export function textLength(text: string): number {
  charge(text.length >> 5);
  if (!SURROGATE.test(text)) return text.length;
  chargeScan(text.length);
  let length = text.length;
  for (let i = 0; i + 1 < text.length; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      length--;
      i++;
    }
  }
  return length;
}

export const isWide = (text: string): boolean => SURROGATE.test(text);

/** The iterator of a value. Throws where it cannot be iterated. */
export function iterate(value: Value): Iterator<Value> {
  const items = itemsOf(value);
  if (items !== undefined) return items[Symbol.iterator]();
  const text = textOf(value);
  if (text !== undefined) return text[Symbol.iterator]();
  if (isDict(value)) return keysOf(value);
  if (value instanceof Undefined) return [][Symbol.iterator]();
  const found = value instanceof PyObject ? value.iterate() : undefined;
  return found ?? typeError(`'${typeName(value)}' object is not iterable`);
}

export const isIterable = (value: Value): boolean =>
  itemsOf(value) !== undefined ||
  textOf(value) !== undefined ||
  isDict(value) ||
  value instanceof Undefined ||
  (value instanceof PyObject && value.iterate() !== undefined);

/** All items, as `list()`. May be the list itself: not to be changed. */
export function listOf(value: Value): readonly Value[] {
  const items = itemsOf(value);
  if (items !== undefined) {
    charge(items.length >> 2);
    return items;
  }
  const out: Value[] = [];
  const source = iterate(value);
  for (let step = source.next(); step.done !== true; step = source.next()) {
    if ((out.length & 63) === 0) chargeItems(out.length === 0 ? 0 : 64);
    out.push(step.value);
    if (out.length > MAX_ITEMS) chargeItems(out.length);
  }
  return out;
}

/** `len()`; throws where there is none. */
export function lengthOf(value: Value): number {
  const text = textOf(value);
  if (text !== undefined) return textLength(text);
  const items = itemsOf(value);
  if (items !== undefined) return items.length;
  if (isDict(value)) return value.size;
  if (value instanceof Undefined) return 0;
  const length = value instanceof PyObject ? value.length() : undefined;
  return length ?? typeError(`object of type '${typeName(value)}' has no len()`);
}

/** The code point at an index; undefined: out of range. */
export function charAt(text: string, index: number): string | undefined {
  charge(text.length >> 5);
  if (!SURROGATE.test(text)) {
    const at = index < 0 ? index + text.length : index;
    return at >= 0 && at < text.length ? text[at] : undefined;
  }
  return codePoints(text).at(index);
}

/** `start:stop:step` made definite for a length, as Python's `slice.indices`. */
export function sliceIndices(
  length: number,
  start: Value,
  stop: Value,
  step: Value,
): { from: number; to: number; by: number } {
  const by = step === null ? 1 : asIndex(step);
  if (by === 0) throw new ChatTemplateError("slice step cannot be zero");
  const bound = (value: Value, empty: number): number => {
    if (value === null) return empty;
    if (value instanceof Undefined) return value.fail();
    const index = asIndex(value, "an index");
    if (index < 0) return Math.max(index + length, by < 0 ? -1 : 0);
    return Math.min(index, by < 0 ? length - 1 : length);
  };
  return { from: bound(start, by < 0 ? length - 1 : 0), to: bound(stop, by < 0 ? -1 : length), by };
}

function pick<T>(items: ArrayLike<T>, { from, to, by }: { from: number; to: number; by: number }): T[] {
  const out: T[] = [];
  chargeItems(Math.max(0, Math.ceil((to - from) / by)));
  if (by > 0) for (let i = from; i < to; i += by) out.push(items[i] as T);
  else for (let i = from; i > to; i += by) out.push(items[i] as T);
  return out;
}

function sliceText(text: string, start: Value, stop: Value, step: Value): string {
  charge(text.length >> 5);
  const wide = SURROGATE.test(text);
  const units = wide ? codePoints(text) : text;
  const indices = sliceIndices(units.length, start, stop, step);
  if (indices.by === 1 && !wide) {
    chargeText(text.length);
    return text.slice(indices.from, Math.max(indices.from, indices.to));
  }
  return pick(units, indices).join("");
}

/** `value[start:stop:step]`; null: not given. */
export function slice(value: Value, start: Value, stop: Value, step: Value): Value {
  if (typeof value === "string") return sliceText(value, start, stop, step);
  if (value instanceof Markup) return new Markup(sliceText(value.text, start, stop, step));
  if (isList(value)) return pick(value, sliceIndices(value.length, start, stop, step));
  if (value instanceof Tuple) return new Tuple(pick(value.items, sliceIndices(value.items.length, start, stop, step)));
  if (value instanceof Range) {
    const { from, to, by } = sliceIndices(value.size, start, stop, step);
    return new Range(value.at(from), value.at(to), value.step * by);
  }
  if (value instanceof Undefined) return value.fail();
  return typeError(isDict(value) ? "unhashable type: 'slice'" : `'${typeName(value)}' object is not subscriptable`);
}

/** `item in container`. */
export function contains(container: Value, item: Value): boolean {
  const text = textOf(container);
  if (text !== undefined) {
    const part = textOf(item);
    if (part === undefined) typeError(`'in <string>' requires string as left operand, not ${typeName(item)}`);
    charge((text.length >> 6) + 1);
    return text.includes(part);
  }
  if (isDict(container)) return container.has(keyOf(item));
  if (container instanceof View && container.kind === "keys") return container.dict.has(keyOf(item));
  if (container instanceof Range && typeof item === "number") {
    const index = (item - container.start) / container.step;
    return Number.isInteger(index) && index >= 0 && index < container.size;
  }
  const source = iterate(container);
  for (let step = source.next(); step.done !== true; step = source.next()) {
    charge(1);
    if (equal(step.value, item)) return true;
  }
  return false;
}

/** `reversed()` as a list; undefined: it cannot be reversed. */
export function reversedItems(value: Value): Value[] | undefined {
  const items = itemsOf(value);
  if (items !== undefined) {
    chargeItems(items.length);
    return items.toReversed();
  }
  const text = textOf(value);
  if (text !== undefined) return codePoints(text).reverse();
  if (isDict(value) || value instanceof Range || value instanceof View) return [...listOf(value)].reverse();
  return undefined;
}
