/** Scopes while a template is compiled: which function of the template they are in, and where their variables lie at run time. */
import type { Cells, Evaluate, Run } from "./runtime.ts";
import { resolve } from "./runtime.ts";
import { Symbols, type Variable } from "./symbols.ts";
import { Undefined, type Value } from "./values.ts";

/** A function of the template: its whole, a macro, a block, a recursive loop. Has a Cells for each call. */
export class FunctionScope {
  private readonly slots = new Map<string, number>();
  readonly depth: number;
  constructor(parent: FunctionScope | undefined) {
    this.depth = parent === undefined ? 0 : parent.depth + 1;
  }
  slot({ level, name }: Variable): number {
    const key = `${level} ${name}`;
    const known = this.slots.get(key);
    if (known !== undefined) return known;
    this.slots.set(key, this.slots.size + 1);
    return this.slots.size;
  }
}

export interface Frame {
  readonly symbols: Symbols;
  readonly parent: Frame | undefined;
  readonly scope: FunctionScope;
  /** What is set here can be seen by blocks and macros through the context. */
  readonly toplevel: boolean;
  /** In a branch: an unknown filter fails only when it is reached. */
  readonly soft: boolean;
  /** `break` and `continue` have a loop here. */
  readonly inLoop: boolean;
}

export function rootFrame(toplevel: boolean): Frame {
  const scope = new FunctionScope(undefined);
  return { symbols: new Symbols(undefined), parent: undefined, scope, toplevel, soft: false, inLoop: false };
}

export function innerFrame(frame: Frame, scope = frame.scope, inLoop = frame.inLoop): Frame {
  return { symbols: new Symbols(frame.symbols), parent: frame, scope, toplevel: false, soft: false, inLoop };
}

export const softFrame = (frame: Frame): Frame => (frame.soft ? frame : { ...frame, soft: true });

/** How many functions out, and at which place, a variable lies. */
function place(frame: Frame, variable: Variable): { hops: number; slot: number } {
  let owner = frame;
  while (owner.symbols.level > variable.level && owner.parent !== undefined) owner = owner.parent;
  return { hops: frame.scope.depth - owner.scope.depth, slot: owner.scope.slot(variable) };
}

function outer(cells: Cells, hops: number): Cells {
  let at = cells;
  for (let i = 0; i < hops; i++) at = at[0] as Cells;
  return at;
}

function variableOf(frame: Frame, name: string): Variable {
  const variable = frame.symbols.find(name);
  if (variable === undefined) throw new Error(`the name ${name} was not seen`);
  return variable;
}

/** Reads a name; undefined: nothing is set. */
export function peeker(frame: Frame, name: string): (cells: Cells) => Value | undefined {
  const { hops, slot } = place(frame, variableOf(frame, name));
  return (cells) => outer(cells, hops)[slot] as Value | undefined;
}

/** Reads a name; an absent one is Undefined. */
export function reader(frame: Frame, name: string): Evaluate {
  const { hops, slot } = place(frame, variableOf(frame, name));
  const absent = () => new Undefined(`'${name}' is undefined`);
  if (hops === 0)
    return (cells) => {
      const value = cells[slot] as Value | undefined;
      return value === undefined ? absent() : value;
    };
  return (cells) => {
    const value = outer(cells, hops)[slot] as Value | undefined;
    return value === undefined ? absent() : value;
  };
}

export type Write = (cells: Cells, value: Value | undefined) => void;

export function writer(frame: Frame, name: string): Write {
  return variableWriter(frame, variableOf(frame, name));
}

function variableWriter(frame: Frame, variable: Variable): Write {
  const { hops, slot } = place(frame, variable);
  if (hops === 0)
    return (cells, value) => {
      cells[slot] = value;
    };
  return (cells, value) => {
    outer(cells, hops)[slot] = value;
  };
}

/** Gives the variables of a scope their first values; undefined: nothing to do. */
export function enter(frame: Frame): ((cells: Cells) => void) | undefined {
  const steps: ((cells: Cells) => void)[] = [];
  for (const [variable, load] of frame.symbols.loads) {
    if (load.kind === "parameter") continue;
    const set = variableWriter(frame, variable);
    if (load.kind === "resolve") {
      const { name } = load;
      steps.push((cells) => set(cells, resolve(name)));
    } else if (load.kind === "alias") {
      const { hops, slot } = place(frame, load.variable);
      steps.push((cells) => set(cells, outer(cells, hops)[slot] as Value | undefined));
    } else steps.push((cells) => set(cells, undefined));
  }
  if (steps.length === 0) return undefined;
  return (cells) => {
    for (const step of steps) step(cells);
  };
}

/** A body with the variables of its scope set up first. */
export function entered(frame: Frame, body: Run): Run {
  const start = enter(frame);
  if (start === undefined) return body;
  const run: Run = (cells) => {
    start(cells);
    return body(cells);
  };
  return withSteps(run, body, start);
}

/** `run`, which does `first` and then `inner`, with the steps of that. */
export function withSteps(run: Run, { steps }: Run, first: (cells: Cells) => void): Run {
  if (steps === undefined) return run;
  run.steps = function* (cells) {
    first(cells);
    return yield* steps(cells);
  };
  return run;
}
