/** The variable `loop` of a for loop. Looks ahead no further than it is asked to. */
import { ChatTemplateError } from "../errors.ts";
import { builtin, Method } from "./calls.ts";
import { equal } from "./dict.ts";
import { charge } from "./limits.ts";
import { iterate, lengthOf } from "./sequences.ts";
import { isDict, itemsOf, type Kwargs, PyObject, Tuple, textOf, Undefined, type Value } from "./values.ts";

/** Renders the body of a recursive loop for other items. */
export type Recurse = (items: Value, depth: number) => Value;

const cycle = builtin("cycle(self, *values)", (loop, values) => {
  const items = values as readonly Value[];
  if (items.length === 0) throw new ChatTemplateError("no items for cycling given");
  return items[(loop as Loop).index0 % items.length] as Value;
});
const changed = builtin("changed(self, *values)", (loop, values) =>
  (loop as Loop).hasChanged(values as readonly Value[]),
);

export class Loop extends PyObject {
  readonly typeName = "LoopContext";
  index0 = -1;
  private iterator: Iterator<Value>;
  private known: number | undefined;
  private after: Value | undefined;
  private current: Value | undefined;
  private before: Value | undefined;
  private lastChanged: Value | undefined;

  constructor(
    private readonly items: Value,
    private readonly recurse: Recurse | undefined,
    private readonly depth0: number,
  ) {
    super();
    this.iterator = iterate(items);
  }

  /** The next item; undefined: no more. */
  next(): Value | undefined {
    const value = this.peek();
    if (value === undefined) return undefined;
    this.after = undefined;
    this.index0++;
    this.before = this.current;
    this.current = value;
    return value;
  }

  private peek(): Value | undefined {
    if (this.after === undefined) {
      const step = this.iterator.next();
      this.after = step.done === true ? undefined : step.value;
    }
    return this.after;
  }

  override length(): number {
    if (this.known !== undefined) return this.known;
    const { items } = this;
    const sized =
      itemsOf(items) !== undefined ||
      textOf(items) !== undefined ||
      isDict(items) ||
      items instanceof Undefined ||
      (items instanceof PyObject && items.length() !== undefined);
    if (sized) return (this.known = lengthOf(items));
    const rest: Value[] = [];
    for (let step = this.iterator.next(); step.done !== true; step = this.iterator.next()) {
      charge(1);
      rest.push(step.value);
    }
    this.iterator = rest[Symbol.iterator]();
    return (this.known = rest.length + this.index0 + 1 + (this.after === undefined ? 0 : 1));
  }

  hasChanged(values: readonly Value[]): boolean {
    const now = new Tuple(values);
    if (this.lastChanged !== undefined && equal(this.lastChanged, now)) return false;
    this.lastChanged = now;
    return true;
  }

  override attribute(name: string): Value | undefined {
    switch (name) {
      case "index":
        return this.index0 + 1;
      case "index0":
        return this.index0;
      case "first":
        return this.index0 === 0;
      case "last":
        return this.peek() === undefined;
      case "length":
        return this.length();
      case "revindex":
        return this.length() - this.index0;
      case "revindex0":
        return this.length() - this.index0 - 1;
      case "depth":
        return this.depth0 + 1;
      case "depth0":
        return this.depth0;
      case "previtem":
        return this.index0 === 0 ? new Undefined("there is no previous item") : this.before;
      case "nextitem": {
        const next = this.peek();
        return next === undefined ? new Undefined("there is no next item") : next;
      }
      case "cycle":
        return new Method(this, cycle);
      case "changed":
        return new Method(this, changed);
    }
    return undefined;
  }

  override get callable(): boolean {
    return true;
  }
  override call(args: readonly Value[], kwargs: Kwargs | undefined): Value {
    if (this.recurse === undefined)
      throw new ChatTemplateError("The loop must have the 'recursive' marker to be called recursively.");
    const [items = kwargs?.get("iterable")] = args;
    if (items === undefined || args.length > 1) throw new ChatTemplateError("a loop is called with one argument");
    return this.recurse(items, this.depth0 + 1);
  }
  override iterate(): Iterator<Value> | undefined {
    return {
      next: () => {
        const value = this.next();
        return value === undefined
          ? { done: true, value: undefined }
          : { done: false, value: new Tuple([value, this]) };
      },
    };
  }
  override repr(): string {
    return `<LoopContext ${this.index0 + 1}/${this.length()}>`;
  }
}
