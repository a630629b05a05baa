/** Functions of the engine, and how Python binds arguments to their parameters. */

import { ChatTemplateError } from "../errors.ts";
import { charge } from "./limits.ts";
import { type Kwargs, Markup, PyObject, textOf, typeError, Undefined, type Value } from "./values.ts";

export interface Signature {
  readonly name: string;
  readonly parameters: readonly string[];
  /** Those of the last parameters. */
  readonly defaults: readonly Value[];
  /** So many of the first parameters take no keyword. */
  readonly positional: number;
  /** `*args`: one more argument, the list of what is left. */
  readonly rest: boolean;
  /** `**kwargs`: one more argument, a dict. */
  readonly keywords: boolean;
}

/** Gets one value for each parameter. */
export interface Builtin {
  readonly signature: Signature;
  readonly run: (...args: Value[]) => Value;
}

const CONSTANTS: Readonly<Record<string, Value>> = { none: null, true: true, false: false };

/** Reads a signature as Python writes it, with constants as defaults: `indent(s, width=4, first=false)`. */
export function signature(text: string): Signature {
  const [, name = "", list = ""] = /^(\w*)\((.*)\)$/.exec(text) ?? [];
  const parameters: string[] = [];
  const defaults: Value[] = [];
  let positional = 0;
  let rest = false;
  let keywords = false;
  for (const part of list.split(", ")) {
    if (part === "") continue;
    if (part === "/") positional = parameters.length;
    else if (part.startsWith("**")) keywords = true;
    else if (part.startsWith("*")) rest = true;
    else {
      const [parameter = "", constant] = part.split("=");
      parameters.push(parameter);
      if (constant !== undefined) {
        const known = CONSTANTS[constant];
        defaults.push(known !== undefined ? known : constant[0] === "'" ? constant.slice(1, -1) : Number(constant));
      }
    }
  }
  return { name, parameters, defaults, positional, rest, keywords };
}

export function builtin(text: string, run: (...args: Value[]) => Value): Builtin {
  return { signature: signature(text), run };
}

/** The values of a function's parameters. Throws when there are too many, too few or unknown ones. */
export function bind(to: Signature, args: readonly Value[], kwargs: Kwargs | undefined): Value[] {
  const { parameters, defaults, positional, rest, name } = to;
  const bound = args.slice(0, parameters.length);
  if (args.length > parameters.length && !rest)
    typeError(`${name}() takes at most ${parameters.length} arguments (${args.length} given)`);
  const left = kwargs === undefined && !to.keywords ? undefined : new Map(kwargs);
  for (let i = bound.length; i < parameters.length; i++) {
    const parameter = parameters[i] ?? "";
    const given = i < positional ? undefined : left?.get(parameter);
    if (given !== undefined) {
      bound.push(given);
      left?.delete(parameter);
      continue;
    }
    const back = i - parameters.length + defaults.length;
    if (back < 0) typeError(`${name}() missing the required argument '${parameter}'`);
    bound.push(defaults[back] as Value);
  }
  if (rest) bound.push(args.slice(parameters.length));
  if (left === undefined) return bound;
  if (to.keywords) bound.push(left);
  else
    for (const key of left.keys())
      typeError(
        parameters.includes(key)
          ? `${name}() got multiple values for argument '${key}'`
          : `${name}() got an unexpected keyword argument '${key}'`,
      );
  return bound;
}

export function callBuiltin(
  { signature: to, run }: Builtin,
  args: readonly Value[],
  kwargs: Kwargs | undefined,
): Value {
  return run(...bind(to, args, kwargs));
}

/** A function as a value. */
export class PyFunction extends PyObject {
  constructor(
    private readonly builtin: Builtin,
    override readonly typeName = "builtin_function_or_method",
  ) {
    super();
  }
  override get callable(): boolean {
    return true;
  }
  override call(args: readonly Value[], kwargs: Kwargs | undefined): Value {
    return callBuiltin(this.builtin, args, kwargs);
  }
  override repr(): string {
    return `<built-in function ${this.builtin.signature.name}>`;
  }
}

/** A method of a value, bound to it. */
export class Method extends PyObject {
  readonly typeName = "builtin_function_or_method";
  constructor(
    private readonly self: Value,
    private readonly builtin: Builtin,
  ) {
    super();
  }
  override get callable(): boolean {
    return true;
  }
  override call(args: readonly Value[], kwargs: Kwargs | undefined): Value {
    return callMethod(this.self, this.builtin, args, kwargs);
  }
  override repr(): string {
    return `<built-in method ${this.builtin.signature.name}>`;
  }
}

/** The first parameter is the value itself. */
export function callMethod(self: Value, method: Builtin, args: readonly Value[], kwargs: Kwargs | undefined): Value {
  charge(1);
  const { parameters, rest, keywords } = method.signature;
  if (kwargs === undefined && !rest && !keywords && args.length + 1 === parameters.length)
    return method.run(self, ...args);
  return callBuiltin(method, [self, ...args], kwargs);
}

export function callValue(callee: Value, args: readonly Value[], kwargs: Kwargs | undefined): Value {
  if (callee instanceof PyObject) return callee.call(args, kwargs);
  if (callee instanceof Undefined) return callee.fail();
  return typeError(`${callee === null ? "None" : "this value"} is not callable`);
}

/** An argument that must be a str. */
export function wantText(value: Value, what = "argument"): string {
  if (value instanceof Markup) return value.text;
  const text = textOf(value);
  if (text === undefined) {
    if (value instanceof Undefined) throw new ChatTemplateError(`${what} must be str: ${value.message}`);
    return typeError(`${what} must be str`);
  }
  return text;
}
