/** Syntax trees of templates. `line` counts from 1. */
import type { Operator } from "./numbers.ts";
import type { Value } from "./values.ts";

export interface Arguments {
  readonly args: readonly Expression[];
  readonly kwargs: readonly { readonly key: string; readonly value: Expression }[];
  /** `*expression`, `**expression`. */
  readonly dynArgs: Expression | undefined;
  readonly dynKwargs: Expression | undefined;
}

export type Comparison = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in";

/** `context`: what becomes of it. A parameter is given by a loop, macro or with. */
export interface Name {
  readonly type: "name";
  readonly name: string;
  context: "load" | "store" | "param";
  readonly line: number;
}
export interface NamespaceTarget {
  readonly type: "namespace";
  readonly name: string;
  readonly attribute: string;
  readonly line: number;
}
export interface TupleNode {
  readonly type: "tuple";
  readonly items: readonly Expression[];
  readonly line: number;
}
export interface Call extends Arguments {
  readonly type: "call";
  readonly callee: Expression;
  readonly line: number;
}
/** `filter` or `test`. Without a value, a filter gets the text of its block. */
export interface FilterOrTest extends Arguments {
  readonly type: "filter" | "test";
  readonly value: Expression | undefined;
  readonly name: string;
  readonly line: number;
}
export type Expression =
  | Name
  | NamespaceTarget
  | TupleNode
  | Call
  | FilterOrTest
  | { readonly type: "constant"; readonly value: Value; readonly line: number }
  | { readonly type: "list"; readonly items: readonly Expression[]; readonly line: number }
  | {
      readonly type: "dict";
      readonly pairs: readonly { readonly key: Expression; readonly value: Expression }[];
      readonly line: number;
    }
  | { readonly type: "attribute"; readonly value: Expression; readonly name: string; readonly line: number }
  | { readonly type: "item"; readonly value: Expression; readonly key: Expression; readonly line: number }
  | {
      readonly type: "slice";
      readonly start: Expression | undefined;
      readonly stop: Expression | undefined;
      readonly step: Expression | undefined;
      readonly line: number;
    }
  | {
      readonly type: "binary";
      readonly operator: Operator;
      readonly left: Expression;
      readonly right: Expression;
      readonly line: number;
    }
  | { readonly type: "unary"; readonly operator: "-" | "+"; readonly value: Expression; readonly line: number }
  | { readonly type: "not"; readonly value: Expression; readonly line: number }
  | { readonly type: "and" | "or"; readonly left: Expression; readonly right: Expression; readonly line: number }
  | { readonly type: "concat"; readonly parts: readonly Expression[]; readonly line: number }
  | {
      readonly type: "compare";
      readonly first: Expression;
      readonly rest: readonly { readonly operator: Comparison; readonly value: Expression }[];
      readonly line: number;
    }
  | {
      readonly type: "condition";
      readonly test: Expression;
      readonly yes: Expression;
      readonly otherwise: Expression | undefined;
      readonly line: number;
    };

export type Body = readonly Statement[];

export interface For {
  readonly type: "for";
  readonly target: Expression;
  readonly over: Expression;
  readonly test: Expression | undefined;
  readonly recursive: boolean;
  readonly body: Body;
  readonly otherwise: Body;
  readonly line: number;
}
export interface If {
  readonly type: "if";
  readonly test: Expression;
  readonly body: Body;
  readonly elifs: readonly If[];
  readonly otherwise: Body;
  readonly line: number;
}
/** What a macro and a call block have in common. */
export interface MacroLike {
  readonly args: readonly Name[];
  /** Those of the last arguments. */
  readonly defaults: readonly Expression[];
  readonly body: Body;
  readonly line: number;
}
export interface Macro extends MacroLike {
  readonly type: "macro";
  readonly name: string;
}
export interface CallBlock extends MacroLike {
  readonly type: "callBlock";
  readonly call: Call;
}
export interface With {
  readonly type: "with";
  readonly targets: readonly Expression[];
  readonly values: readonly Expression[];
  readonly body: Body;
  readonly line: number;
}
export interface Assign {
  readonly type: "assign";
  readonly target: Expression;
  readonly value: Expression;
  readonly line: number;
}
export interface AssignBlock {
  readonly type: "assignBlock";
  readonly target: Expression;
  readonly filter: Expression | undefined;
  readonly body: Body;
  readonly line: number;
}
export interface FilterBlock {
  readonly type: "filterBlock";
  readonly filter: Expression;
  readonly body: Body;
  readonly line: number;
}
export interface Block {
  readonly type: "block";
  readonly name: string;
  readonly scoped: boolean;
  readonly required: boolean;
  readonly body: Body;
  readonly line: number;
}
export type Statement =
  | { readonly type: "output"; readonly parts: readonly (string | Expression)[]; readonly line: number }
  | For
  | If
  | Macro
  | CallBlock
  | With
  | Assign
  | AssignBlock
  | FilterBlock
  | Block
  /** A part with a scope of its own. */
  | { readonly type: "scope"; readonly body: Body; readonly line: number }
  /** What the model wrote, to be marked when a model is trained: prints its body. */
  | ({ readonly type: "generation" } & MacroLike)
  | { readonly type: "break" | "continue"; readonly line: number }
  /** A tag that needs other templates (include, import, extends): it fails when it is reached. */
  | { readonly type: "loader"; readonly tag: string; readonly stores: readonly string[]; readonly line: number };

/** The expressions and bodies right below a statement, in the order of Jinja's fields. */
export function childrenOf(node: Statement | Expression): readonly (Statement | Expression)[] {
  switch (node.type) {
    case "output":
      return node.parts.filter((part) => typeof part !== "string");
    case "for":
      return [node.target, node.over, ...node.body, ...node.otherwise, ...some(node.test)];
    case "if":
      return [node.test, ...node.body, ...node.elifs, ...node.otherwise];
    case "macro":
      return [...node.args, ...node.defaults, ...node.body];
    case "callBlock":
      return [node.call, ...node.args, ...node.defaults, ...node.body];
    case "with":
      return [...node.targets, ...node.values, ...node.body];
    case "assign":
      return [node.target, node.value];
    case "assignBlock":
      return [node.target, ...some(node.filter), ...node.body];
    case "filterBlock":
      return [...node.body, node.filter];
    case "block":
    case "scope":
    case "generation":
      return node.body;
    case "tuple":
    case "list":
      return node.items;
    case "dict":
      return node.pairs.flatMap(({ key, value }) => [key, value]);
    case "call":
      return [node.callee, ...argumentsOf(node)];
    case "filter":
    case "test":
      return [...some(node.value), ...argumentsOf(node)];
    case "attribute":
    case "unary":
    case "not":
      return [node.value];
    case "item":
      return [node.value, node.key];
    case "slice":
      return [...some(node.start), ...some(node.stop), ...some(node.step)];
    case "binary":
    case "and":
    case "or":
      return [node.left, node.right];
    case "concat":
      return node.parts;
    case "compare":
      return [node.first, ...node.rest.map(({ value }) => value)];
    case "condition":
      return [node.test, node.yes, ...some(node.otherwise)];
    default:
      return [];
  }
}

const some = (node: Expression | undefined): readonly Expression[] => (node === undefined ? [] : [node]);
const argumentsOf = (node: Arguments): readonly Expression[] => [
  ...node.args,
  ...node.kwargs.map(({ value }) => value),
  ...some(node.dynArgs),
  ...some(node.dynKwargs),
];
