/** Where assignments go. */
import { ChatTemplateError } from "../errors.ts";
import type { Body, Expression } from "./ast.ts";
import { type Frame, reader, type Write, writer } from "./frames.ts";
import { charge } from "./limits.ts";
import { type Cells, type Run, runtime } from "./runtime.ts";
import { iterate } from "./sequences.ts";
import { Namespace, type Value } from "./values.ts";

export type CompileBody = (nodes: Body, frame: Frame) => Run;

export interface Assigner {
  /** Throws when a namespace is none; to be called before the value is computed. */
  readonly check: (cells: Cells) => void;
  readonly set: (cells: Cells, value: Value) => void;
}

const fine = (): void => {};

export function assigner(target: Expression, frame: Frame): Assigner {
  if (target.type === "name") return { check: fine, set: nameWriter(target.name, frame) };
  if (target.type === "namespace") {
    const read = reader(frame, target.name);
    const { attribute } = target;
    const namespace = (cells: Cells): Namespace => {
      const value = read(cells);
      if (value instanceof Namespace) return value;
      throw new ChatTemplateError("cannot assign attribute on non-namespace object");
    };
    return { check: namespace, set: (cells, value) => namespace(cells).set(attribute, value) };
  }
  if (target.type !== "tuple") throw new Error(`${target.type} is no target`);
  const parts = target.items.map((item) => assigner(item, frame));
  return {
    check: (cells) => {
      for (const part of parts) part.check(cells);
    },
    set: (cells, value) => {
      const values = unpack(value, parts.length);
      for (const [i, part] of parts.entries()) part.set(cells, values[i] as Value);
    },
  };
}

function nameWriter(name: string, frame: Frame): Write {
  const set = writer(frame, name);
  if (!frame.toplevel) return set;
  return (cells, value) => {
    set(cells, value);
    if (value !== undefined) runtime.context.vars.set(name, value);
  };
}

function unpack(value: Value, count: number): Value[] {
  const values: Value[] = [];
  const source = iterate(value);
  for (let step = source.next(); step.done !== true; step = source.next()) {
    charge(1);
    if (values.length === count) throw new ChatTemplateError(`too many values to unpack (expected ${count})`);
    values.push(step.value);
  }
  if (values.length < count)
    throw new ChatTemplateError(`not enough values to unpack (expected ${count}, got ${values.length})`);
  return values;
}
