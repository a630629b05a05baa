/**
 * Values of a template and how they stand for Python's:
 * str: string, or Markup | int: number (a safe integer), bigint beyond | float: PyFloat | bool, None: boolean, null |
 * list: array | tuple: Tuple | dict: Map, in the order of its keys | missing: Undefined | everything else: PyObject.
 * No value is an object of the host: templates reach what these classes name, and nothing else.
 */
import { ChatTemplateError } from "../errors.ts";

export type Value =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly Value[]
  | Dict
  | PyFloat
  | Tuple
  | Markup
  | Undefined
  | PyObject;

/** Keys are canonical (`dict.ts`): equal Python keys are the same Map key. Those that are not strings have their original in a PyDict. */
export type Dict = ReadonlyMap<Key, Value>;
export type Key = string | number | bigint | null | object;
export type Kwargs = ReadonlyMap<string, Value>;

export class PyFloat {
  constructor(readonly value: number) {}
}

export class Tuple {
  constructor(
    readonly items: readonly Value[],
    /** Names of the items, for those of `groupby`. */
    readonly names?: readonly string[],
  ) {}
}

/** Text that is safe in HTML: what `safe`, `escape` and others give. */
export class Markup {
  constructor(readonly text: string) {}
}

/** A dict with keys that are not strings or integers as they stand. */
export class PyDict extends Map<Key, Value> {
  /** Canonical key to the key as first given; absent where they are the same. */
  readonly originals = new Map<Key, Value>();
}

/** An absent value: prints as nothing, fails where it is used. */
export class Undefined {
  constructor(private readonly reason: string | (() => string)) {}
  get message(): string {
    return typeof this.reason === "string" ? this.reason : this.reason();
  }
  fail(): never {
    throw new ChatTemplateError(this.message);
  }
}

/** Objects beyond plain data. Each gives what it can. */
export abstract class PyObject {
  abstract readonly typeName: string;
  attribute(_name: string): Value | undefined {
    return undefined;
  }
  call(_args: readonly Value[], _kwargs: Kwargs | undefined): Value {
    throw new ChatTemplateError(`'${this.typeName}' object is not callable`);
  }
  get callable(): boolean {
    return false;
  }
  /** Undefined: it cannot be iterated. */
  iterate(): Iterator<Value> | undefined {
    return undefined;
  }
  /** Undefined: it has no length. */
  length(): number | undefined {
    return undefined;
  }
  repr(): string {
    return `<${this.typeName} object>`;
  }
}

/** Something that can be iterated once. */
export class Once extends PyObject {
  constructor(
    readonly source: Iterator<Value>,
    override readonly typeName = "generator",
  ) {
    super();
  }
  override iterate(): Iterator<Value> {
    return this.source;
  }
}

export class Namespace extends PyObject {
  readonly typeName = "Namespace";
  readonly attributes = new Map<string, Value>();
  override attribute(name: string): Value | undefined {
    return this.attributes.get(name);
  }
  set(name: string, value: Value): void {
    if (name.startsWith("_"))
      throw new ChatTemplateError(`a namespace takes no attribute that begins with an underscore: '${name}'`);
    this.attributes.set(name, value);
  }
}

export const isText = (value: Value): value is string | Markup => typeof value === "string" || value instanceof Markup;
export const isDict = (value: Value): value is Dict => value instanceof Map;
export const isList = (value: Value): value is readonly Value[] => Array.isArray(value);
export const isInt = (value: Value): value is number | bigint => typeof value === "number" || typeof value === "bigint";
/** Whether it is a number in Python, where bool is one. */
export const isNumber = (value: Value): value is number | bigint | boolean | PyFloat =>
  isInt(value) || typeof value === "boolean" || value instanceof PyFloat;
/** Items of a list or tuple. */
export const itemsOf = (value: Value): readonly Value[] | undefined =>
  isList(value) ? value : value instanceof Tuple ? value.items : undefined;
/** A str as it stands; undefined for others. */
export const textOf = (value: Value): string | undefined =>
  typeof value === "string" ? value : value instanceof Markup ? value.text : undefined;

export function typeName(value: Value): string {
  if (typeof value === "string") return "str";
  if (value instanceof Markup) return "Markup";
  if (typeof value === "boolean") return "bool";
  if (isInt(value)) return "int";
  if (value === null) return "NoneType";
  if (value instanceof PyFloat) return "float";
  if (isList(value)) return "list";
  if (value instanceof Tuple) return "tuple";
  if (value instanceof Undefined) return "Undefined";
  if (isDict(value)) return "dict";
  return value.typeName;
}

/** As Python's `bool()`. */
export function truthy(value: Value): boolean {
  if (typeof value === "boolean") return value;
  if (typeof value === "string") return value !== "";
  if (value === null || value instanceof Undefined) return false;
  if (typeof value === "number") return value !== 0;
  if (typeof value === "bigint") return value !== 0n;
  if (value instanceof PyFloat) return value.value !== 0;
  if (isList(value)) return value.length > 0;
  if (isDict(value)) return value.size > 0;
  if (value instanceof Tuple) return value.items.length > 0;
  if (value instanceof Markup) return value.text !== "";
  return value.length() !== 0;
}

/** A Python TypeError, in our words. */
export function typeError(message: string): never {
  throw new ChatTemplateError(message);
}

/** An attribute or element that is not there. */
export function missing(object: Value, name: Value): Undefined {
  return new Undefined(() => {
    const kind = object === null ? "None" : `${typeName(object)} object`;
    return typeof name === "string"
      ? `'${kind}' has no attribute '${name}'`
      : `${kind} has no element ${typeof name === "number" ? name : typeName(name)}`;
  });
}
