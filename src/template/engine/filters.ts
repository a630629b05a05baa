/** All filters, by name. */

import { ChatTemplateError } from "../errors.ts";
import { type Builtin, builtin, callBuiltin } from "./calls.ts";
import { COLLECTION_FILTERS } from "./filters-collection.ts";
import { attributeGetter, ORDER_FILTERS } from "./filters-order.ts";
import { TEXT_FILTERS } from "./filters-text.ts";
import { charge } from "./limits.ts";
import { iterate } from "./sequences.ts";
import { TESTS } from "./tests.ts";
import { type Kwargs, Once, truthy, Undefined, type Value } from "./values.ts";

type Pick = (item: Value) => Value;

/** Calls a filter or test by its name. */
function named(
  table: ReadonlyMap<string, Builtin>,
  kind: string,
  name: Value,
  args: readonly Value[],
  kwargs: Kwargs,
): Pick {
  const found = typeof name === "string" ? table.get(name) : undefined;
  if (found === undefined) {
    const hint = name instanceof Undefined ? ` (${name.message}; did you forget to quote the callable name?)` : "";
    return () => {
      throw new ChatTemplateError(`No ${kind} named '${typeof name === "string" ? name : "?"}'${hint}`);
    };
  }
  return (item) => callBuiltin(found, [item, ...args], kwargs);
}

function* mapped(value: Value, args: readonly Value[], given: Kwargs): Iterator<Value> {
  if (!truthy(value)) return;
  const run = mapper(args, given);
  const source = iterate(value);
  for (let step = source.next(); step.done !== true; step = source.next()) {
    charge(1);
    yield run(step.value);
  }
}

function mapper(args: readonly Value[], given: Kwargs): Pick {
  const attribute = given.get("attribute");
  const [name] = args;
  if (name === undefined && attribute !== undefined) {
    for (const key of given.keys())
      if (key !== "attribute" && key !== "default") throw new ChatTemplateError(`Unexpected keyword argument '${key}'`);
    return attributeGetter(attribute, given.get("default") ?? null);
  }
  if (name === undefined) throw new ChatTemplateError("map requires a filter argument");
  return named(FILTERS, "filter", name, args.slice(1), given);
}

function* chosen(
  value: Value,
  args: readonly Value[],
  kwargs: Kwargs,
  keep: boolean,
  byAttribute: boolean,
): Iterator<Value> {
  if (!truthy(value)) return;
  let rest = args;
  let pick: Pick = (item) => item;
  if (byAttribute) {
    const [attribute] = args;
    if (attribute === undefined) throw new ChatTemplateError("Missing parameter for attribute name");
    pick = attributeGetter(attribute, null);
    rest = args.slice(1);
  }
  const [name] = rest;
  const test: Pick = name === undefined ? (item) => item : named(TESTS, "test", name, rest.slice(1), kwargs);
  const source = iterate(value);
  for (let step = source.next(); step.done !== true; step = source.next()) {
    charge(1);
    if (truthy(test(pick(step.value))) === keep) yield step.value;
  }
}

const choosing = (name: string, keep: boolean, byAttribute: boolean): readonly [string, Builtin] => [
  name,
  builtin(
    `${name}(value, *args, **kwargs)`,
    (value, args, kwargs) =>
      new Once(chosen(value as Value, args as readonly Value[], kwargs as Kwargs, keep, byAttribute)),
  ),
];

export const FILTERS: ReadonlyMap<string, Builtin> = new Map<string, Builtin>([
  ...TEXT_FILTERS,
  ...COLLECTION_FILTERS,
  ...ORDER_FILTERS,
  [
    "map",
    builtin(
      "map(value, *args, **kwargs)",
      (value, args, kwargs) => new Once(mapped(value as Value, args as readonly Value[], kwargs as Kwargs)),
    ),
  ],
  choosing("select", true, false),
  choosing("reject", false, false),
  choosing("selectattr", true, true),
  choosing("rejectattr", false, true),
]);
