/** Expressions as closures. */
import { ChatTemplateError } from "../errors.ts";
import type { Comparison, Expression } from "./ast.ts";
import { getAttribute, getItem, isDictName } from "./attributes.ts";
import { compileCall, compileFilterOrTest, constantText } from "./compile-call.ts";
import { compare, equal, setKey } from "./dict.ts";
import { type Frame, reader, softFrame } from "./frames.ts";
import { chargeItems, chargeText } from "./limits.ts";
import { negate, numeric } from "./numbers.ts";
import { binary, unary } from "./operators.ts";
import type { Evaluate } from "./runtime.ts";
import { contains, slice } from "./sequences.ts";
import { str } from "./text.ts";
import { isNumber, PyDict, PyFloat, Tuple, truthy, Undefined, type Value } from "./values.ts";

export function expression(node: Expression, frame: Frame): Evaluate {
  switch (node.type) {
    case "constant": {
      const { value } = node;
      return () => value;
    }
    case "name":
      return reader(frame, node.name);
    case "attribute":
      return attribute(expression(node.value, frame), node.name);
    case "item":
      return item(node.value, node.key, frame);
    case "call":
      return compileCall(node, frame, expression);
    case "filter":
    case "test":
      return compileFilterOrTest(node, frame, expression);
    case "tuple": {
      const items = node.items.map((each) => expression(each, frame));
      return (cells) => new Tuple(all(items, cells));
    }
    case "list": {
      const items = node.items.map((each) => expression(each, frame));
      return (cells) => all(items, cells);
    }
    case "dict":
      return dict(node.pairs, frame);
    case "binary": {
      const { operator } = node;
      const right = expression(node.right, frame);
      const base = operator === "**" ? unfoldedBase(node.left, node.right) : undefined;
      if (base !== undefined) return (cells) => unary("-", binary("**", base, right(cells)));
      const left = expression(node.left, frame);
      return (cells) => binary(operator, left(cells), right(cells));
    }
    case "unary": {
      const { operator } = node;
      const value = expression(node.value, frame);
      return (cells) => unary(operator, value(cells));
    }
    case "not": {
      const value = expression(node.value, frame);
      return (cells) => !truthy(value(cells));
    }
    case "and": {
      const left = expression(node.left, frame);
      const right = expression(node.right, frame);
      return (cells) => {
        const value = left(cells);
        return truthy(value) ? right(cells) : value;
      };
    }
    case "or": {
      const left = expression(node.left, frame);
      const right = expression(node.right, frame);
      return (cells) => {
        const value = left(cells);
        return truthy(value) ? value : right(cells);
      };
    }
    case "concat":
      return concat(node.parts.map((part) => expression(part, frame)));
    case "compare":
      return comparison(node.first, node.rest, frame);
    case "condition":
      return condition(node, frame);
    default:
      throw new Error(`${node.type} is no expression of its own`);
  }
}

/** The value of an expression of number literals; undefined: it is none, or it fails. */
function folded(node: Expression): Value | undefined {
  try {
    if (node.type === "constant") return isNumber(node.value) ? node.value : undefined;
    if (node.type === "unary") {
      const value = folded(node.value);
      return value === undefined ? undefined : unary(node.operator, value);
    }
    if (node.type !== "binary") return undefined;
    const left = folded(node.left);
    const right = left === undefined ? undefined : folded(node.right);
    return left === undefined || right === undefined ? undefined : binary(node.operator, left, right);
  } catch (error) {
    if (error instanceof ChatTemplateError) return undefined;
    throw error;
  }
}

/**
 * Jinja computes `-2 ** 2` itself, and the minus binds first. But `-2 ** n` it writes down as Python, where the power does.
 * Gives the base without its minus in that case.
 */
function unfoldedBase(left: Expression, right: Expression): Value | undefined {
  const base = numeric(folded(left) ?? null);
  if (base === undefined || folded(right) !== undefined) return undefined;
  const negative = base instanceof PyFloat ? base.value < 0 || Object.is(base.value, -0) : base < 0;
  return negative ? negate(base) : undefined;
}

function all(items: readonly Evaluate[], cells: Parameters<Evaluate>[0]): Value[] {
  chargeItems(items.length);
  return items.map((item) => item(cells));
}

function attribute(value: Evaluate, name: string): Evaluate {
  if (isDictName(name)) return (cells) => getAttribute(value(cells), name);
  return (cells) => {
    const object = value(cells);
    if (object instanceof Map) {
      const found = (object as ReadonlyMap<string, Value>).get(name);
      if (found !== undefined) return found;
    }
    return getAttribute(object, name);
  };
}

function item(of: Expression, key: Expression, frame: Frame): Evaluate {
  const value = expression(of, frame);
  if (key.type === "slice") {
    const part = (node: Expression | undefined): Evaluate =>
      node === undefined ? () => null : expression(node, frame);
    const [start, stop, step] = [part(key.start), part(key.stop), part(key.step)];
    return (cells) => slice(value(cells), start(cells), stop(cells), step(cells));
  }
  const name = constantText(key);
  if (name !== undefined)
    return (cells) => {
      const object = value(cells);
      if (object instanceof Map) {
        const found = (object as ReadonlyMap<string, Value>).get(name);
        if (found !== undefined) return found;
      }
      return getItem(object, name);
    };
  const index = expression(key, frame);
  return (cells) => {
    const object = value(cells);
    return getItem(object, index(cells));
  };
}

function dict(pairs: readonly { readonly key: Expression; readonly value: Expression }[], frame: Frame): Evaluate {
  const parts = pairs.map(({ key, value }) => [expression(key, frame), expression(value, frame)] as const);
  return (cells) => {
    chargeItems(parts.length);
    const made = new PyDict();
    for (const [key, value] of parts) setKey(made, key(cells), value(cells));
    return made;
  };
}

function concat(parts: readonly Evaluate[]): Evaluate {
  return (cells) => {
    let text = "";
    for (const part of parts) text += str(part(cells));
    chargeText(text.length);
    return text;
  };
}

const TEXT: Readonly<Record<Comparison, (a: Value, b: Value) => boolean>> = {
  "==": equal,
  "!=": (a, b) => !equal(a, b),
  "<": (a, b) => compare(a, b, "<") < 0,
  "<=": (a, b) => compare(a, b, "<=") <= 0,
  ">": (a, b) => compare(a, b, ">") > 0,
  ">=": (a, b) => compare(a, b, ">=") >= 0,
  in: (a, b) => contains(b, a),
  "not in": (a, b) => !contains(b, a),
};

function comparison(
  first: Expression,
  rest: readonly { readonly operator: Comparison; readonly value: Expression }[],
  frame: Frame,
): Evaluate {
  const left = expression(first, frame);
  const [only, ...others] = rest;
  if (only === undefined) return left;
  const right = expression(only.value, frame);
  const holds = TEXT[only.operator];
  const text = constantText(only.value);
  if (others.length === 0 && text !== undefined && (only.operator === "==" || only.operator === "!=")) {
    const when = only.operator === "==";
    return (cells) => {
      const value = left(cells);
      return (typeof value === "string" ? value === text : equal(value, text)) === when;
    };
  }
  if (others.length === 0)
    return (cells) => {
      const value = left(cells);
      return holds(value, right(cells));
    };
  const steps = rest.map(({ operator, value }) => [TEXT[operator], expression(value, frame)] as const);
  return (cells) => {
    let before = left(cells);
    for (const [step, value] of steps) {
      const after = value(cells);
      if (!step(before, after)) return false;
      before = after;
    }
    return true;
  };
}

function condition(node: Extract<Expression, { type: "condition" }>, frame: Frame): Evaluate {
  const soft = softFrame(frame);
  const test = expression(node.test, soft);
  const yes = expression(node.yes, soft);
  const { line } = node;
  const otherwise: Evaluate =
    node.otherwise === undefined
      ? () =>
          new Undefined(`the inline if-expression on line ${line} evaluated to false and no else section was defined.`)
      : expression(node.otherwise, soft);
  return (cells) => (truthy(test(cells)) ? yes(cells) : otherwise(cells));
}
