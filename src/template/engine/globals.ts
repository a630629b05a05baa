/** Names that every template knows. */
import { ChatTemplateError, TemplateRaisedError } from "../errors.ts";
import { fromKeys } from "./attributes.ts";
import { builtin, Method, PyFunction, wantText } from "./calls.ts";
import { keyOf, pairsOf, setKey } from "./dict.ts";
import { charge } from "./limits.ts";
import { asIndex } from "./numbers.ts";
import { Cycler, Joiner, Range } from "./objects.ts";
import { runtime } from "./runtime.ts";
import { iterate, listOf } from "./sequences.ts";
import { strftime } from "./strftime.ts";
import { str } from "./text.ts";
import { type Dict, isDict, type Kwargs, Namespace, PyDict, PyObject, typeError, type Value } from "./values.ts";

/** `dict(mapping or pairs, **more)`. */
function makeDict(args: readonly Value[], kwargs: Kwargs | undefined): Dict {
  const dict = new PyDict();
  const [source] = args;
  if (source !== undefined && isDict(source)) charge(source.size * 8);
  if (args.length > 1) typeError(`dict expected at most 1 argument, got ${args.length}`);
  if (source !== undefined && isDict(source)) for (const [key, value] of pairsOf(source)) setKey(dict, key, value);
  else if (source instanceof Namespace) typeError("'Namespace' object is not iterable");
  else if (source !== undefined) {
    const pairs = iterate(source);
    for (let step = pairs.next(); step.done !== true; step = pairs.next()) {
      charge(1);
      const pair = listOf(step.value);
      if (pair.length !== 2)
        throw new ChatTemplateError(`dictionary update sequence element has length ${pair.length}; 2 is required`);
      setKey(dict, pair[0] as Value, pair[1] as Value);
    }
  }
  for (const [key, value] of kwargs ?? []) dict.set(key, value);
  return dict;
}

class DictType extends PyObject {
  readonly typeName = "TemplateDict";
  override get callable(): boolean {
    return true;
  }
  override call(args: readonly Value[], kwargs: Kwargs | undefined): Value {
    return makeDict(args, kwargs);
  }
  override attribute(name: string): Value | undefined {
    if (name !== "fromkeys") return undefined;
    const run = builtin("fromkeys(self, keys, value=none, /)", (_, keys, value) =>
      fromKeys(keys as Value, value as Value),
    );
    return new Method(this, run);
  }
}

class NamespaceType extends PyObject {
  readonly typeName = "type";
  override get callable(): boolean {
    return true;
  }
  override call(args: readonly Value[], kwargs: Kwargs | undefined): Value {
    const made = new Namespace();
    if (args.length === 0) {
      for (const [name, value] of kwargs ?? []) made.set(name, value);
      return made;
    }
    for (const [key, value] of makeDict(args, kwargs)) {
      if (typeof key === "string") made.set(key, value);
      else made.attributes.set(`${String(keyOf(key as Value))}`, value);
    }
    return made;
  }
  override repr(): string {
    return "<class 'Namespace'>";
  }
}

/** A class of which templates make objects. */
class Maker extends PyObject {
  readonly typeName = "type";
  constructor(
    private readonly name: string,
    private readonly make: (args: readonly Value[], kwargs: Kwargs | undefined) => Value,
  ) {
    super();
  }
  override get callable(): boolean {
    return true;
  }
  override call(args: readonly Value[], kwargs: Kwargs | undefined): Value {
    return this.make(args, kwargs);
  }
  override repr(): string {
    return `<class '${this.name}'>`;
  }
}

function range(args: readonly Value[]): Range {
  const [first, second, third] = args.map((value) => asIndex(value, "an integer"));
  if (first === undefined || args.length > 3) return typeError(`range expected 1 to 3 arguments, got ${args.length}`);
  return second === undefined ? new Range(0, first, 1) : new Range(first, second, third ?? 1);
}

const method = (name: string, run: () => Value): Value => new PyFunction(builtin(`${name}()`, run));

export const GLOBALS: ReadonlyMap<string, Value> = new Map<string, Value>([
  ["range", new PyFunction(builtin("range(*args)", (args) => range(args as readonly Value[])))],
  ["dict", new DictType()],
  ["namespace", new NamespaceType()],
  ["cycler", new Maker("cycler", (args) => new Cycler(args, method))],
  ["joiner", new Maker("joiner", (args, kwargs) => new Joiner(args[0] ?? kwargs?.get("sep") ?? ", "))],
  [
    "lipsum",
    new PyFunction(
      builtin("lipsum(*args, **kwargs)", () => {
        throw new ChatTemplateError("'lipsum' is not supported");
      }),
    ),
  ],
  [
    "raise_exception",
    new PyFunction(
      builtin("raise_exception(message)", (message) => {
        throw new TemplateRaisedError(str(message as Value));
      }),
      "function",
    ),
  ],
  [
    "strftime_now",
    new PyFunction(
      builtin("strftime_now(format)", (format) => {
        runtime.now ??= new Date();
        return strftime(runtime.now, wantText(format as Value, "format"));
      }),
      "function",
    ),
  ],
]);
