/** For loops. */
import { type Body, childrenOf, type Expression, type For, type Statement } from "./ast.ts";
import { expression } from "./compile-expression.ts";
import { type Assigner, assigner, type CompileBody } from "./compile-target.ts";
import { enter, entered, type Frame, FunctionScope, innerFrame, writer } from "./frames.ts";
import { syntaxError } from "./lexer.ts";
import { charge } from "./limits.ts";
import { Loop } from "./loop.ts";
import { BREAK, type Cells, CONTINUE, captureCall, type Evaluate, type Run, type Steps, write } from "./runtime.ts";
import { iterate } from "./sequences.ts";
import { undeclared } from "./symbols.ts";
import { isList, Once, truthy, type Value } from "./values.ts";

type Node = Statement | Expression;

function some(nodes: Iterable<Node>, holds: (node: Node) => boolean): boolean {
  for (const node of nodes) if (holds(node) || some(childrenOf(node), holds)) return true;
  return false;
}

/** Whether the body needs the variable `loop`. */
function needsLoop(node: For): boolean {
  if (node.recursive || undeclared(node.body, ["loop"]).has("loop")) return true;
  return some([...node.body, ...node.otherwise], (inner) => inner.type === "block" && inner.scoped);
}

/** Items for which the loop's condition holds, one by one: what the body does may change the condition. */
type Filter = (cells: Cells, items: Value) => Value;

function filter(node: For, frame: Frame): Filter | undefined {
  if (node.test === undefined) return undefined;
  const inner = innerFrame(frame, new FunctionScope(frame.scope));
  inner.symbols.parameters(node.target);
  inner.symbols.visit(node.test);
  const start = enter(inner);
  const assign = assigner(node.target, inner);
  const test = expression(node.test, inner);
  function* passing(around: Cells, items: Value): Iterator<Value> {
    const cells: Cells = [around];
    start?.(cells);
    const source = iterate(items);
    for (let step = source.next(); step.done !== true; step = source.next()) {
      charge(1);
      assign.set(cells, step.value);
      if (truthy(test(cells))) yield step.value;
    }
  }
  return (cells, items) => new Once(passing(cells, items));
}

interface Parts {
  readonly target: Assigner;
  readonly start: ((cells: Cells) => void) | undefined;
  readonly body: Run;
  readonly otherwise: Run | undefined;
  readonly setLoop: ((cells: Cells, value: Value | undefined) => void) | undefined;
}

interface Turns {
  (cells: Cells, items: Value, loop: Loop | undefined): ReturnType<Run>;
  /** The same, giving way behind each turn. */
  steps(cells: Cells, items: Value, loop: Loop | undefined): ReturnType<Steps>;
}

/** Runs the loop over items; Jinja's `else` also runs when no turn came to its end. */
function turns({ target, start, body, otherwise, setLoop }: Parts): Turns {
  const turn = (cells: Cells, value: Value): ReturnType<Run> => {
    charge(1);
    target.set(cells, value);
    start?.(cells);
    return body(cells);
  };
  const turnSteps = ({ steps }: Run, cells: Cells, value: Value): ReturnType<Steps> | undefined => {
    if (steps === undefined || !holdsMuch(value)) return undefined;
    charge(1);
    target.set(cells, value);
    start?.(cells);
    return steps(cells);
  };
  const over = (cells: Cells, items: Value, loop: Loop | undefined): boolean => {
    let finished = false;
    if (loop !== undefined) {
      for (let value = loop.next(); value !== undefined; value = loop.next()) {
        const signal = turn(cells, value);
        if (signal === BREAK) break;
        if (signal !== CONTINUE) finished = true;
      }
    } else if (isList(items)) {
      for (const value of items) {
        const signal = turn(cells, value);
        if (signal === BREAK) break;
        if (signal !== CONTINUE) finished = true;
      }
    } else {
      const source = iterate(items);
      for (let step = source.next(); step.done !== true; step = source.next()) {
        const signal = turn(cells, step.value);
        if (signal === BREAK) break;
        if (signal !== CONTINUE) finished = true;
      }
    }
    return finished;
  };
  const run = (cells: Cells, items: Value, loop: Loop | undefined): ReturnType<Run> => {
    setLoop?.(cells, loop);
    const finished = over(cells, items, loop);
    return finished || otherwise === undefined ? 0 : otherwise(cells);
  };
  function* steps(cells: Cells, items: Value, loop: Loop | undefined): ReturnType<Steps> {
    setLoop?.(cells, loop);
    let finished = false;
    const next = loop === undefined ? nextOf(items) : () => loop.next();
    for (let value = next(); value !== undefined; value = next()) {
      const inner = turnSteps(body, cells, value);
      const signal = inner === undefined ? turn(cells, value) : yield* inner;
      if (signal === BREAK) break;
      if (signal !== CONTINUE) finished = true;
      yield;
    }
    return finished || otherwise === undefined ? 0 : otherwise(cells);
  }
  return Object.assign(run, { steps });
}

/** So many items of a list within an item: a loop over them takes milliseconds. */
const MANY = 256;

/** Is there such a list in it, as that of the calls of a message? */
function holdsMuch(item: Value): boolean {
  if (isList(item)) return item.length > MANY;
  if (!(item instanceof Map)) return false;
  for (const inner of item.values()) if (isList(inner) && inner.length > MANY) return true;
  return false;
}

function nextOf(items: Value): () => Value | undefined {
  const source = iterate(items);
  return () => {
    const step = source.next();
    return step.done === true ? undefined : step.value;
  };
}

export function compileFor(node: For, frame: Frame, compileBody: CompileBody): Run {
  const stored = (inner: Node) => inner.type === "name" && inner.context === "store" && inner.name === "loop";
  if (some([node], stored)) syntaxError("Can't assign to special loop variable in for-loop target", node.line);
  const over = expression(node.over, frame);
  const passing = filter(node, frame);
  const scope = node.recursive ? new FunctionScope(frame.scope) : frame.scope;
  const inner = innerFrame(frame, scope, true);
  const extended = needsLoop(node);
  if (extended) inner.symbols.parameter("loop");
  inner.symbols.parameters(node.target);
  inner.symbols.visitAll(node.body);
  const otherwise = elseBody(node.otherwise, frame, scope, compileBody, node.recursive);
  const run = turns({
    target: assigner(node.target, inner),
    start: enter(inner),
    body: compileBody(node.body, inner),
    otherwise,
    setLoop: extended ? writer(inner, "loop") : undefined,
  });
  const itemsOf = (cells: Cells, items: Value): Value => (passing === undefined ? items : passing(cells, items));
  if (node.recursive) return recursive(over, itemsOf, run);
  const begun = (cells: Cells): [Value, Loop | undefined] => {
    const items = itemsOf(cells, over(cells));
    return [items, extended ? new Loop(items, undefined, 0) : undefined];
  };
  return Object.assign((cells: Cells) => run(cells, ...begun(cells)), {
    steps: (cells: Cells) => run.steps(cells, ...begun(cells)),
  });
}

function elseBody(
  nodes: Body,
  frame: Frame,
  scope: FunctionScope,
  compileBody: CompileBody,
  recursive: boolean,
): Run | undefined {
  if (nodes.length === 0) return undefined;
  const inner = innerFrame(frame, scope, recursive ? false : frame.inLoop);
  inner.symbols.visitAll(nodes);
  return entered(inner, compileBody(nodes, inner));
}

function recursive(
  over: Evaluate,
  itemsOf: (cells: Cells, items: Value) => Value,
  run: (cells: Cells, items: Value, loop: Loop | undefined) => ReturnType<Run>,
): Run {
  return (around) => {
    const render = (given: Value, depth: number): string => {
      const cells: Cells = [around];
      const items = itemsOf(around, given);
      const loop = new Loop(items, render, depth);
      return captureCall(() => run(cells, items, loop), cells);
    };
    write(render(over(around), 0));
    return 0;
  };
}
