/** Objects of Python that are neither plain data nor functions: ranges, views of dicts, cyclers and joiners. */
import { ChatTemplateError } from "../errors.ts";
import { chargeItems } from "./limits.ts";
import { type Dict, type Kwargs, PyObject, type Value } from "./values.ts";

/** `range()`. Jinja's sandbox refuses one of more than 100,000. */
export class Range extends PyObject {
  readonly typeName = "range";
  readonly size: number;
  constructor(
    readonly start: number,
    readonly stop: number,
    readonly step: number,
  ) {
    super();
    if (step === 0) throw new ChatTemplateError("range() arg 3 must not be zero");
    this.size = Math.max(0, Math.ceil((stop - start) / step));
    if (this.size > 100_000) throw new ChatTemplateError("Range too big: the sandbox blocks ranges larger than 100000");
  }
  at(index: number): number {
    return this.start + index * this.step;
  }
  override *iterate(): Iterator<Value> {
    for (let i = 0; i < this.size; i++) yield this.at(i);
  }
  override length(): number {
    return this.size;
  }
  override attribute(name: string): Value | undefined {
    return name === "start" || name === "stop" || name === "step" ? this[name] : undefined;
  }
  override repr(): string {
    return `range(${this.start}, ${this.stop}${this.step === 1 ? "" : `, ${this.step}`})`;
  }
}

/** What `keys()`, `values()` and `items()` of a dict give. */
export class View extends PyObject {
  readonly typeName: string;
  constructor(
    readonly kind: "keys" | "values" | "items",
    readonly dict: Dict,
    private readonly list: (view: View) => Value[],
  ) {
    super();
    this.typeName = `dict_${kind}`;
  }
  items(): Value[] {
    chargeItems(this.dict.size);
    return this.list(this);
  }
  override iterate(): Iterator<Value> {
    return this.items().values();
  }
  override length(): number {
    return this.dict.size;
  }
}

/** `cycler('a', 'b')`. */
export class Cycler extends PyObject {
  readonly typeName = "Cycler";
  private at = 0;
  constructor(
    private readonly items: readonly Value[],
    private readonly method: (name: string, run: () => Value) => Value,
  ) {
    super();
    if (items.length === 0) throw new ChatTemplateError("at least one item has to be provided");
  }
  override attribute(name: string): Value | undefined {
    const { items } = this;
    switch (name) {
      case "current":
        return items[this.at];
      case "next":
        return this.method("next", () => {
          const value = items[this.at] as Value;
          this.at = (this.at + 1) % items.length;
          return value;
        });
      case "reset":
        return this.method("reset", () => {
          this.at = 0;
          return null;
        });
    }
    return undefined;
  }
}

/** `joiner(', ')`: nothing the first time it is called, the separator then. */
export class Joiner extends PyObject {
  readonly typeName = "Joiner";
  private used = false;
  constructor(private readonly separator: Value) {
    super();
  }
  override get callable(): boolean {
    return true;
  }
  override call(_args: readonly Value[], _kwargs: Kwargs | undefined): Value {
    if (this.used) return this.separator;
    this.used = true;
    return "";
  }
  override attribute(name: string): Value | undefined {
    return name === "sep" ? this.separator : name === "used" ? this.used : undefined;
  }
}
