/** JSON types that a parameter may have, as bits. */
export const Kind = { string: 1, null: 2, integer: 4, number: 8, boolean: 16, object: 32, array: 64 } as const;

/** Bits of `Kind`; 0: the schema does not say. */
export type Kinds = number;

type Schema = Readonly<Record<string, unknown>>;

const MAX_DEPTH = 16;
const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The schema of one parameter of a tool; undefined where there is none. */
export function parameterSchema(parameters: unknown, key: string, root: unknown = parameters, depth = 0): unknown {
  const schema = resolve(parameters, root);
  if (!isObject(schema) || depth > MAX_DEPTH) return undefined;
  if (isObject(schema["properties"]) && Object.hasOwn(schema["properties"], key)) return schema["properties"][key];
  for (const word of ["allOf", "anyOf", "oneOf"]) {
    const parts = schema[word];
    if (!Array.isArray(parts)) continue;
    for (const part of parts) {
      const found = parameterSchema(part, key, root, depth + 1);
      if (found !== undefined) return found;
    }
  }
  return isObject(schema["additionalProperties"]) ? schema["additionalProperties"] : undefined;
}

/** The schema of a list's items; undefined where there is none. `root`: the document that `$ref` points into. */
export function itemSchema(list: unknown, root: unknown, depth = 0): unknown {
  const schema = resolve(list, root);
  if (!isObject(schema) || depth > MAX_DEPTH) return undefined;
  if (isObject(schema["items"])) return schema["items"];
  for (const word of ["allOf", "anyOf", "oneOf"]) {
    const parts = schema[word];
    if (!Array.isArray(parts)) continue;
    for (const part of parts) {
      const found = itemSchema(part, root, depth + 1);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** The types that a schema allows: `$ref` resolved, unions looked through. `root`: the document that `$ref` points into. */
export function kindsOf(schema: unknown, root: unknown, depth = 0): Kinds {
  const resolved = resolve(schema, root);
  if (!isObject(resolved) || depth > MAX_DEPTH) return 0;
  const type = resolved["type"];
  const named = kindsOfNames(Array.isArray(type) ? type : [type]);
  const nullable = resolved["nullable"] === true ? Kind.null : 0;
  if (named !== 0) return named | nullable;
  if ("const" in resolved) return kindOfValue(resolved["const"]) | nullable;
  if (Array.isArray(resolved["enum"]))
    return resolved["enum"].reduce((all: Kinds, value) => all | kindOfValue(value), nullable);
  for (const word of ["anyOf", "oneOf"]) {
    const parts = resolved[word];
    if (!Array.isArray(parts)) continue;
    const kinds = parts.map((part) => kindsOf(part, root, depth + 1));
    // One part that says nothing allows everything.
    return kinds.includes(0) ? 0 : kinds.reduce((all, one) => all | one, nullable);
  }
  if (Array.isArray(resolved["allOf"])) {
    const kinds = resolved["allOf"].map((part) => kindsOf(part, root, depth + 1)).filter((one) => one !== 0);
    return kinds.length === 0 ? 0 : kinds.reduce((all, one) => all & one) | nullable;
  }
  if ("properties" in resolved || "additionalProperties" in resolved) return Kind.object | nullable;
  return "items" in resolved || "prefixItems" in resolved ? Kind.array | nullable : 0;
}

const mayBeString = (kinds: Kinds): boolean => kinds === 0 || (kinds & Kind.string) !== 0;
const NO_CHOICES: readonly string[] = [];

/** The strings that a schema names as values (`enum`, `const`); none where it leaves strings open. `root`: as in `kindsOf`. */
export function choicesOf(schema: unknown, root: unknown, depth = 0): readonly string[] {
  const resolved = resolve(schema, root);
  if (!isObject(resolved) || depth > MAX_DEPTH) return NO_CHOICES;
  const named = "const" in resolved ? [resolved["const"]] : resolved["enum"];
  if (Array.isArray(named)) return named.filter((value) => typeof value === "string");
  for (const word of ["anyOf", "oneOf", "allOf"]) {
    const parts = resolved[word];
    if (!Array.isArray(parts)) continue;
    const strings = parts.filter((part) => word === "allOf" || mayBeString(kindsOf(part, root, depth + 1)));
    const choices = strings.map((part) => choicesOf(part, root, depth + 1));
    if (word === "allOf" || choices.every((some) => some.length > 0)) return choices.flat();
  }
  return NO_CHOICES;
}

function resolve(schema: unknown, root: unknown): unknown {
  let current = schema;
  for (let hops = 0; hops < MAX_DEPTH; hops++) {
    if (!isObject(current) || typeof current["$ref"] !== "string") return current;
    current = pointed(current["$ref"], root);
  }
  return undefined;
}

/** What a JSON pointer within the document names. */
function pointed(reference: string, root: unknown): unknown {
  if (!reference.startsWith("#")) return undefined;
  let current = root;
  for (const step of reference.slice(1).split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(current)) current = current[Number(key)];
    else if (isObject(current) && Object.hasOwn(current, key)) current = current[key];
    else return undefined;
  }
  return current;
}

/** Names as schemas write them, and those of other languages that models' tools are written with. */
const NAMES: Readonly<Record<string, Kinds>> = {
  string: Kind.string,
  str: Kind.string,
  text: Kind.string,
  null: Kind.null,
  integer: Kind.integer,
  int: Kind.integer,
  number: Kind.number | Kind.integer,
  float: Kind.number | Kind.integer,
  boolean: Kind.boolean,
  bool: Kind.boolean,
  object: Kind.object,
  dict: Kind.object,
  array: Kind.array,
  list: Kind.array,
};

function kindsOfNames(names: readonly unknown[]): Kinds {
  return names.reduce<Kinds>((all, name) => all | (typeof name === "string" ? (NAMES[name.toLowerCase()] ?? 0) : 0), 0);
}

/** The type of a JSON value. */
export function kindOfValue(value: unknown): Kinds {
  if (value === null) return Kind.null;
  if (Array.isArray(value)) return Kind.array;
  if (typeof value === "number") return Number.isInteger(value) ? Kind.integer : Kind.number;
  if (typeof value === "boolean") return Kind.boolean;
  return typeof value === "string" ? Kind.string : Kind.object;
}
