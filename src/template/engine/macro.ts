/** Macros, and the bodies of call blocks, as values. */
import { ChatTemplateError } from "../errors.ts";
import { charge } from "./limits.ts";
import { type Cells, captureCall, type Run } from "./runtime.ts";
import { type Kwargs, PyDict, PyObject, Tuple, Undefined, type Value } from "./values.ts";

export interface MacroShape {
  /** Undefined: that of a call block. */
  readonly name: string | undefined;
  readonly args: readonly string[];
  /** Its body reads `caller`, `kwargs`, `varargs`: given behind the arguments, in this order. */
  readonly caller: boolean;
  readonly kwargs: boolean;
  readonly varargs: boolean;
  /** Puts arguments into the variables of a call; undefined: not given. */
  readonly bind: (cells: Cells, values: readonly (Value | undefined)[]) => void;
  readonly body: Run;
}

export class Macro extends PyObject {
  readonly typeName = "Macro";
  constructor(
    private readonly shape: MacroShape,
    /** Where it was defined. */
    private readonly around: Cells,
  ) {
    super();
  }
  override get callable(): boolean {
    return true;
  }
  override attribute(name: string): Value | undefined {
    const { shape } = this;
    switch (name) {
      case "name":
        return shape.name ?? null;
      case "arguments":
        return new Tuple(shape.args);
      case "caller":
        return shape.caller;
      case "catch_kwargs":
        return shape.kwargs;
      case "catch_varargs":
        return shape.varargs;
    }
    return undefined;
  }
  override repr(): string {
    return this.shape.name === undefined ? "<Macro anonymous>" : `<Macro '${this.shape.name}'>`;
  }

  override call(args: readonly Value[], kwargs: Kwargs | undefined): Value {
    charge(4);
    const { shape } = this;
    const values: (Value | undefined)[] = args.slice(0, shape.args.length);
    const left = kwargs === undefined || kwargs.size === 0 ? undefined : new Map(kwargs);
    const take = (name: string): Value | undefined => {
      const value = left?.get(name);
      left?.delete(name);
      return value;
    };
    let foundCaller = values.length === shape.args.length && shape.args.includes("caller");
    for (let i = values.length; i < shape.args.length; i++) {
      const name = shape.args[i] as string;
      values.push(take(name));
      if (name === "caller") foundCaller = true;
    }
    if (shape.caller && !foundCaller) values.push(take("caller") ?? new Undefined("No caller defined"));
    if (shape.kwargs) values.push(new PyDict(left ?? []));
    else if (left !== undefined && left.size > 0) this.refuse([...left.keys()]);
    if (shape.varargs) values.push(new Tuple(args.slice(shape.args.length)));
    else if (args.length > shape.args.length)
      throw new ChatTemplateError(`macro '${shape.name}' takes not more than ${shape.args.length} argument(s)`);
    const cells: Cells = [this.around];
    shape.bind(cells, values);
    return captureCall(shape.body, cells);
  }

  private refuse([first, ...others]: string[]): never {
    const { name } = this.shape;
    if (first === "caller" || others.includes("caller"))
      throw new ChatTemplateError(`macro '${name}' was invoked with two values for the special caller argument`);
    throw new ChatTemplateError(`macro '${name}' takes no keyword argument '${first}'`);
  }
}
