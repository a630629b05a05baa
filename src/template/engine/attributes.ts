/** `value.name` and `value[key]`, as Jinja's immutable sandbox has them: nothing of the host, nothing that changes a value. */
import { ChatTemplateError } from "../errors.ts";
import { type Builtin, builtin, Method } from "./calls.ts";
import { equal, keyOf, keysOf, pairsOf, setKey } from "./dict.ts";
import { charge } from "./limits.ts";
import { asIndex, bitLength } from "./numbers.ts";
import { Range, View } from "./objects.ts";
import { charAt, contains, iterate, listOf, sliceIndices } from "./sequences.ts";
import { type Access, braceFormat } from "./string-format.ts";
import { TEXT_METHODS } from "./text-methods.ts";
import {
  type Dict,
  isDict,
  isInt,
  isList,
  itemsOf,
  Markup,
  missing,
  Namespace,
  PyDict,
  PyFloat,
  PyObject,
  Tuple,
  typeError,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";

function viewItems(view: View): Value[] {
  if (view.kind === "keys") return [...keysOf(view.dict)];
  if (view.kind === "values") return [...view.dict.values()];
  return Array.from(pairsOf(view.dict), (pair) => new Tuple(pair));
}
const view = (kind: View["kind"]): [string, Builtin] => [
  kind,
  builtin(`${kind}(self)`, (dict) => new View(kind, dict as Dict, viewItems)),
];

const DICT_METHODS: ReadonlyMap<string, Builtin> = new Map<string, Builtin>([
  view("keys"),
  view("values"),
  view("items"),
  [
    "get",
    builtin("get(self, key, default=none, /)", (dict, key, otherwise) => {
      const value = (dict as Dict).get(keyOf(key as Value));
      return value === undefined ? (otherwise as Value) : value;
    }),
  ],
  ["copy", builtin("copy(self)", (dict) => dict as Value)],
  [
    "fromkeys",
    builtin("fromkeys(self, keys, value=none, /)", (_, keys, value) => fromKeys(keys as Value, value as Value)),
  ],
]);

export function fromKeys(keys: Value, value: Value): Dict {
  const dict = new PyDict();
  const source = iterate(keys);
  for (let step = source.next(); step.done !== true; step = source.next()) {
    charge(1);
    setKey(dict, step.value, value);
  }
  return dict;
}

const count = builtin("count(self, value, /)", (self, value) => {
  let found = 0;
  for (const item of itemsOf(self as Value) ?? []) if (equal(item, value as Value)) found++;
  return found;
});
const index = builtin("index(self, value, start=0, stop=9007199254740991, /)", (self, value, start, stop) => {
  const items = itemsOf(self as Value) ?? [];
  const { from, to } = sliceIndices(items.length, start as Value, stop as Value, null);
  for (let i = from; i < to; i++) if (equal(items[i] as Value, value as Value)) return i;
  throw new ChatTemplateError("value is not in list");
});
const TUPLE_METHODS: ReadonlyMap<string, Builtin> = new Map([
  ["count", count],
  ["index", index],
]);
const LIST_METHODS: ReadonlyMap<string, Builtin> = new Map([
  ...TUPLE_METHODS,
  ["copy", builtin("copy(self)", (list) => list as Value)],
]);
const FLOAT_METHODS: ReadonlyMap<string, Builtin> = new Map([
  ["is_integer", builtin("is_integer(self)", (value) => Number.isInteger((value as PyFloat).value))],
  ["conjugate", builtin("conjugate(self)", (value) => value as Value)],
]);
const INT_METHODS: ReadonlyMap<string, Builtin> = new Map([
  ["bit_length", builtin("bit_length(self)", (value) => bitLength(BigInt(value as number)))],
  ["conjugate", builtin("conjugate(self)", (value) => (typeof value === "boolean" ? Number(value) : (value as Value)))],
]);
const access: Access = { attribute: getAttribute, item: getItem };
const STR_METHODS: ReadonlyMap<string, Builtin> = new Map([
  ...TEXT_METHODS,
  [
    "format",
    builtin("format(self, *args, **kwargs)", (self, args, kwargs) =>
      braceFormat(self as string | Markup, args as readonly Value[], kwargs as Dict, access),
    ),
  ],
  [
    "format_map",
    builtin("format_map(self, mapping, /)", (self, mapping) =>
      isDict(mapping as Value)
        ? braceFormat(self as string | Markup, [], mapping as Dict, access)
        : typeError("format_map() wants a mapping"),
    ),
  ],
]);
const RANGE_METHODS: ReadonlyMap<string, Builtin> = new Map([
  ["count", builtin("count(self, value, /)", (self, value) => (contains(self as Value, value as Value) ? 1 : 0))],
  [
    "index",
    builtin("index(self, value, /)", (self, value) => {
      const at = listOf(self as Value).findIndex((item) => equal(item, value as Value));
      if (at < 0) throw new ChatTemplateError("value is not in range");
      return at;
    }),
  ],
]);
const NO_METHODS: ReadonlyMap<string, Builtin> = new Map();

/** Methods that change their value: the sandbox hides them. */
const UNSAFE_LIST = new Set(["append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"]);
const UNSAFE_DICT = new Set(["clear", "pop", "popitem", "setdefault", "update"]);
/** What every object of Python has under these names is hidden, too. */
const DUNDERS = new Set(
  "class delattr dir doc eq format ge getattribute getstate gt hash init init_subclass le lt ne new reduce reduce_ex repr setattr sizeof str subclasshook"
    .split(" ")
    .map((name) => `__${name}__`),
);

function unsafe(value: Value, name: string): Undefined {
  return new Undefined(`access to attribute '${name}' of '${typeName(value)}' object is unsafe.`);
}

/** Names that a dict has besides its keys; for these `d.name` is not `d["name"]`. */
export const isDictName = (name: string): boolean =>
  DICT_METHODS.has(name) || UNSAFE_DICT.has(name) || DUNDERS.has(name);

function methodsOf(value: Value): ReadonlyMap<string, Builtin> {
  if (typeof value === "string" || value instanceof Markup) return STR_METHODS;
  if (isDict(value)) return DICT_METHODS;
  if (isList(value)) return LIST_METHODS;
  if (value instanceof Tuple) return TUPLE_METHODS;
  if (value instanceof PyFloat) return FLOAT_METHODS;
  if (value instanceof Range) return RANGE_METHODS;
  return isInt(value) || typeof value === "boolean" ? INT_METHODS : NO_METHODS;
}

/** The method of a value, for a call at once; undefined: look further. */
export function methodOf(value: Value, name: string): Builtin | undefined {
  return methodsOf(value).get(name);
}

/** `getattr(value, name)`; undefined: there is none. */
function attributeOf(value: Value, name: string): Value | undefined {
  if (name.startsWith("_") && !(value instanceof Namespace)) {
    if (DUNDERS.has(name)) return unsafe(value, name);
    return value instanceof Undefined ? value.fail() : undefined;
  }
  const method = methodsOf(value).get(name);
  if (method !== undefined) return new Method(value, method);
  if (isDict(value)) return UNSAFE_DICT.has(name) ? unsafe(value, name) : undefined;
  if (isList(value)) return UNSAFE_LIST.has(name) ? unsafe(value, name) : undefined;
  if (value instanceof Tuple) {
    const at = value.names?.indexOf(name) ?? -1;
    return at < 0 ? undefined : value.items[at];
  }
  if (value instanceof Undefined) return value.fail();
  if (value instanceof PyFloat || isInt(value) || typeof value === "boolean") return numberAttribute(value, name);
  return value instanceof PyObject ? value.attribute(name) : undefined;
}

function numberAttribute(value: PyFloat | number | bigint | boolean, name: string): Value | undefined {
  const plain = typeof value === "boolean" ? Number(value) : value;
  if (name === "real") return plain;
  if (name === "imag") return value instanceof PyFloat ? new PyFloat(0) : 0;
  if (value instanceof PyFloat) return undefined;
  return name === "numerator" ? plain : name === "denominator" ? 1 : undefined;
}

/** `value[key]`; undefined: there is no such item, or none at all. */
function itemOf(value: Value, key: Value): Value | undefined {
  if (isDict(value)) return isList(key) || isDict(key) ? undefined : value.get(keyOf(key));
  if (value instanceof Undefined) return value.fail();
  if (!isInt(key) && typeof key !== "boolean") return undefined;
  const at = asIndex(key);
  if (isList(value)) return value.at(at);
  if (value instanceof Tuple) return value.items.at(at);
  if (typeof value === "string") return charAt(value, at);
  if (value instanceof Markup) {
    const found = charAt(value.text, at);
    return found === undefined ? undefined : new Markup(found);
  }
  if (value instanceof Range) {
    const index = at < 0 ? at + value.size : at;
    return index >= 0 && index < value.size ? value.at(index) : undefined;
  }
  return undefined;
}

/** `value.name` in a template: an attribute, else the item of that name. */
export function getAttribute(value: Value, name: string): Value {
  let found = attributeOf(value, name);
  if (found === undefined && isDict(value)) found = value.get(name);
  return found === undefined ? missing(value, name) : found;
}

/** `value[key]` in a template: an item, else the attribute of that name. */
export function getItem(value: Value, key: Value): Value {
  const found = itemOf(value, key);
  if (found !== undefined) return found;
  const name = typeof key === "string" ? key : key instanceof Markup ? key.text : undefined;
  const attribute = name === undefined ? undefined : attributeOf(value, name);
  return attribute === undefined ? missing(value, key) : attribute;
}
