import { PIECE_ITEMS, type Steps } from "../steps.ts";
import { isSmall } from "./engine/json-steps.ts";
import { type Key, PyFloat, type Value } from "./engine/values.ts";
import { ChatTemplateError } from "./errors.ts";

const MAX_DEPTH = 500;

/**
 * A value of the engine for plain data of JavaScript: JSON values as `JSON.parse` gives them, what `parseLossless` gives, and bigints.
 * A number without a fraction is an int. Object keys whose value is undefined are left out; an undefined item of a list is none.
 * Throws a ChatTemplateError for anything else: functions, dates, class instances.
 */
export function plainValue(value: unknown, depth = 0): Value {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return numberValue(value);
    case "bigint":
      return Number.isSafeInteger(Number(value)) ? Number(value) : value;
    case "undefined":
      return null;
    case "object":
      if (value === null || value instanceof PyFloat) return value;
      if (depth > MAX_DEPTH) throw new ChatTemplateError(`a variable nests more than ${MAX_DEPTH} levels deep`);
      if (Array.isArray(value)) return listValue(value, depth);
      if (value instanceof Map) return mapValue(value, depth);
      if (isPlain(value)) return objectValue(value, depth);
  }
  throw new ChatTemplateError("a variable of the template is not plain data");
}

/** Values that are looked at in one go. */
const PIECE = 1 << 11;

/** The same in steps. */
export function* plainSteps(value: unknown, depth = 0): Steps<Value> {
  if (typeof value !== "object" || value === null) return plainValue(value, depth);
  if (isPlain(value)) {
    const dict = new Map<Key, Value>();
    for (const [key, item] of Object.entries(value))
      if (item !== undefined) dict.set(key, yield* plainSteps(item, depth + 1));
    return dict;
  }
  if (yield* isMade(value, depth)) return value as Value;
  if (!Array.isArray(value)) return plainValue(value, depth);
  const list: Value[] = [];
  for (const item of value as readonly unknown[]) {
    if (list.length % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
    list.push(isSmall(item) ? plainValue(item, depth + 1) : yield* plainSteps(item, depth + 1));
  }
  return list;
}

/** Is it made of the engine's values throughout, as what `parseLossless` gives is? */
function* isMade(value: object, outerDepth: number): Steps<boolean> {
  let level: unknown[] = [value];
  for (let depth = outerDepth, seen = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return false;
    const next: unknown[] = [];
    for (const outer of level) {
      const items = insideOf(outer);
      if (items === undefined) return false;
      for (const item of items) {
        if (++seen % PIECE === 0) yield;
        if (typeof item === "object" && item !== null) next.push(item);
        else if (plainValue(item) !== item) return false;
      }
    }
    level = next;
  }
  return true;
}

/** What is in one of the engine's values; undefined: it is none. */
function insideOf(value: unknown): Iterable<unknown> | undefined {
  if (Array.isArray(value)) return value;
  if (value instanceof PyFloat) return [];
  if (!(value instanceof Map)) return undefined;
  for (const key of value.keys()) if (typeof key !== "string") return undefined;
  return value.values();
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function numberValue(value: number): Value {
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value;
  if (!Number.isInteger(value) || Math.abs(value) >= 1e21) return new PyFloat(value);
  return BigInt(String(value));
}

/** The list itself if all of it is made of the engine's values already. */
function listValue(list: readonly unknown[], depth: number): readonly Value[] {
  let made: Value[] | undefined;
  for (let i = 0; i < list.length; i++) {
    const value = plainValue(list[i], depth + 1);
    if (value !== list[i]) made ??= list.slice(0, i) as Value[];
    made?.push(value);
  }
  return made ?? (list as readonly Value[]);
}

/** What parseLossless gives stays as it is. */
function mapValue(map: ReadonlyMap<unknown, unknown>, depth: number): ReadonlyMap<Key, Value> {
  let made: Map<Key, Value> | undefined;
  for (const [key, item] of map) {
    if (typeof key !== "string")
      throw new ChatTemplateError("a variable of the template has keys that are not strings");
    const value = plainValue(item, depth + 1);
    if (value !== item) made ??= new Map(map as ReadonlyMap<Key, Value>);
    made?.set(key, value);
  }
  return made ?? (map as ReadonlyMap<Key, Value>);
}

function objectValue(value: object, depth: number): ReadonlyMap<Key, Value> {
  const dict = new Map<Key, Value>();
  for (const key of Object.keys(value)) {
    const item = (value as Readonly<Record<string, unknown>>)[key];
    if (item !== undefined) dict.set(key, plainValue(item, depth + 1));
  }
  return dict;
}
