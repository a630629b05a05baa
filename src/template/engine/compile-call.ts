/** Calls, filters and tests of expressions as closures. */

import { ChatTemplateError } from "../errors.ts";
import type { Arguments, Call, Expression, FilterOrTest } from "./ast.ts";
import { getAttribute, methodOf } from "./attributes.ts";
import { type Builtin, bind, callMethod, callValue } from "./calls.ts";
import { FILTERS } from "./filters.ts";
import type { Frame } from "./frames.ts";
import { syntaxError } from "./lexer.ts";
import { charge } from "./limits.ts";
import type { Evaluate } from "./runtime.ts";
import { iterate } from "./sequences.ts";
import { TESTS } from "./tests.ts";
import { isDict, type Kwargs, textOf, typeError, typeName, type Value } from "./values.ts";

export type CompileExpression = (node: Expression, frame: Frame) => Evaluate;

interface Given {
  readonly args: (cells: Parameters<Evaluate>[0]) => Value[];
  readonly kwargs: ((cells: Parameters<Evaluate>[0]) => Kwargs) | undefined;
}

function argumentsOf(node: Arguments, frame: Frame, compile: CompileExpression): Given {
  const positional = node.args.map((arg) => compile(arg, frame));
  const keywords = node.kwargs.map(({ key, value }) => [key, compile(value, frame)] as const);
  const dynArgs = node.dynArgs && compile(node.dynArgs, frame);
  const dynKwargs = node.dynKwargs && compile(node.dynKwargs, frame);
  const [first, second] = positional;
  let args: Given["args"];
  if (dynArgs !== undefined)
    args = (cells) => {
      const values = positional.map((arg) => arg(cells));
      const source = iterate(dynArgs(cells));
      for (let step = source.next(); step.done !== true; step = source.next()) {
        charge(1);
        values.push(step.value);
      }
      return values;
    };
  else if (first === undefined) args = () => [];
  else if (second === undefined) args = (cells) => [first(cells)];
  else args = (cells) => positional.map((arg) => arg(cells));
  if (keywords.length === 0 && dynKwargs === undefined) return { args, kwargs: undefined };
  return {
    args,
    kwargs: (cells) => {
      const values = new Map<string, Value>();
      for (const [key, value] of keywords) values.set(key, value(cells));
      if (dynKwargs !== undefined) spread(dynKwargs(cells), values);
      return values;
    },
  };
}

function spread(given: Value, into: Map<string, Value>): void {
  if (!isDict(given)) typeError(`argument after ** must be a mapping, not ${typeName(given)}`);
  for (const [key, value] of given) {
    charge(4);
    if (typeof key !== "string") throw new ChatTemplateError("keywords must be strings");
    if (into.has(key)) throw new ChatTemplateError(`got multiple values for keyword argument '${key}'`);
    into.set(key, value);
  }
}

/** A call. `extra` gives more keyword arguments: the caller of a call block. */
export function compileCall(
  node: Call,
  frame: Frame,
  compile: CompileExpression,
  extra?: (cells: Parameters<Evaluate>[0], kwargs: Map<string, Value>) => void,
): Evaluate {
  const { args, kwargs: given } = argumentsOf(node, frame, compile);
  const kwargs =
    extra === undefined
      ? given
      : (cells: Parameters<Evaluate>[0]): Kwargs => {
          const values = new Map(given?.(cells) ?? []);
          if (values.has("caller")) throw new ChatTemplateError("got multiple values for keyword argument 'caller'");
          extra(cells, values);
          return values;
        };
  const { callee } = node;
  if (callee.type === "attribute") {
    const target = compile(callee.value, frame);
    const { name } = callee;
    return (cells) => {
      const self = target(cells);
      const method = methodOf(self, name);
      if (method !== undefined) return callMethod(self, method, args(cells), kwargs?.(cells));
      return callValue(getAttribute(self, name), args(cells), kwargs?.(cells));
    };
  }
  const called = compile(callee, frame);
  return (cells) => {
    const value = called(cells);
    return callValue(value, args(cells), kwargs?.(cells));
  };
}

/** `block` is the value of a filter that has none: the text of its block. */
export function compileFilterOrTest(
  node: FilterOrTest,
  frame: Frame,
  compile: CompileExpression,
  block?: Evaluate,
): Evaluate {
  const builtin = (node.type === "filter" ? FILTERS : TESTS).get(node.name);
  if (builtin === undefined) {
    const message = `No ${node.type} named '${node.name}' found.`;
    if (!frame.soft) syntaxError(message, node.line);
    return () => {
      throw new ChatTemplateError(message);
    };
  }
  const value =
    node.value === undefined
      ? (block ?? syntaxError("a filter without a value", node.line))
      : compileFilterValue(node.value, frame, compile, block);
  const direct = staticArguments(node, builtin, frame, compile);
  if (direct !== undefined) return applied(builtin, value, direct);
  const { args, kwargs } = argumentsOf(node, frame, compile);
  return (cells) => {
    charge(1);
    return builtin.run(...bind(builtin.signature, [value(cells), ...args(cells)], kwargs?.(cells)));
  };
}

function compileFilterValue(node: Expression, frame: Frame, compile: CompileExpression, block?: Evaluate): Evaluate {
  if (block !== undefined && node.type === "filter") return compileFilterOrTest(node, frame, compile, block);
  return compile(node, frame);
}

/** Arguments behind the value, one for each parameter, bound once; undefined: only the run can tell, or they do not fit. */
function staticArguments(
  node: FilterOrTest,
  { signature }: Builtin,
  frame: Frame,
  compile: CompileExpression,
): Evaluate[] | undefined {
  const { parameters, defaults, rest, keywords } = signature;
  if (node.dynArgs !== undefined || node.dynKwargs !== undefined || rest || keywords) return undefined;
  if (node.args.length >= parameters.length) return undefined;
  const known = new Map(node.kwargs.map(({ key, value }) => [key, value]));
  const bound: Evaluate[] = [];
  for (let i = 1; i < parameters.length; i++) {
    const name = parameters[i] as string;
    const positional = node.args[i - 1];
    const given = positional ?? known.get(name);
    if (positional === undefined) known.delete(name);
    const back = i - parameters.length + defaults.length;
    if (given === undefined && back < 0) return undefined;
    const constant = defaults[back] as Value;
    bound.push(given === undefined ? () => constant : compile(given, frame));
  }
  return known.size > 0 ? undefined : bound;
}

function applied({ run }: Builtin, value: Evaluate, args: readonly Evaluate[]): Evaluate {
  const [first, second] = args;
  if (first === undefined)
    return (cells) => {
      charge(1);
      return run(value(cells));
    };
  if (second === undefined)
    return (cells) => {
      charge(1);
      return run(value(cells), first(cells));
    };
  return (cells) => {
    charge(1);
    return run(value(cells), ...args.map((arg) => arg(cells)));
  };
}

/** A text key known beforehand; undefined: the key is an expression. */
export const constantText = (node: Expression): string | undefined =>
  node.type === "constant" && typeof node.value === "string" ? textOf(node.value) : undefined;
