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
