/** Templates as closures: statements. */
import { ChatTemplateError } from "../errors.ts";
import { childrenOf, type Expression, type If, type Statement } from "./ast.ts";
import { type Blocks, callBlock } from "./blocks.ts";
import { compileCall, compileFilterOrTest } from "./compile-call.ts";
import { expression } from "./compile-expression.ts";
import { compileFor } from "./compile-for.ts";
import { compileMacro } from "./compile-macro.ts";
import { assigner, type CompileBody } from "./compile-target.ts";
import { enter, entered, type Frame, innerFrame, softFrame, withSteps, writer } from "./frames.ts";
import { syntaxError } from "./lexer.ts";
import { charge } from "./limits.ts";
import {
  BREAK,
  type Cells,
  CONTINUE,
  capture,
  type Evaluate,
  type Run,
  runtime,
  type Steps,
  write,
} from "./runtime.ts";
import { str } from "./text.ts";
import { textOf, truthy, typeError, typeName, type Value } from "./values.ts";

/** What is left to do is nothing. */
const NOTHING: Run = () => 0;

/** A compiler of bodies for a template with these blocks. */
export function bodyCompiler(blocks: Blocks): CompileBody {
  const body: CompileBody = (nodes, frame) => {
    const runs = nodes.map((node) => statement(node, frame, body, blocks));
    const [only] = runs;
    if (only === undefined) return NOTHING;
    if (runs.length === 1) return only;
    const all: Run = (cells) => {
      for (const run of runs) {
        const signal = run(cells);
        if (signal !== 0) return signal;
      }
      return 0;
    };
    return runs.some(({ steps }) => steps !== undefined) ? Object.assign(all, { steps: inSteps(runs) }) : all;
  };
  return body;
}

const inSteps = (runs: readonly Run[]): Steps =>
  function* (cells) {
    for (const run of runs) {
      const signal = run.steps === undefined ? run(cells) : yield* run.steps(cells);
      if (signal !== 0) return signal;
    }
    return 0;
  };

/** Nodes of a statement's own expressions, its body aside. */
function sizeOf(node: Statement | Expression): number {
  let size = 1;
  for (const child of childrenOf(node)) size += sizeOf(child);
  return size;
}

/** Notes the line, and charges for what every run of a statement costs. */
function priced(node: Statement, own: readonly Expression[], run: Run): Run {
  const { line } = node;
  let size = 0;
  for (const part of own) size += sizeOf(part);
  const price = 1 + (size >> 2);
  const pay = (): void => {
    runtime.line = line;
    charge(price);
  };
  const paid: Run = (cells) => {
    pay();
    return run(cells);
  };
  return withSteps(paid, run, pay);
}

function statement(node: Statement, frame: Frame, body: CompileBody, blocks: Blocks): Run {
  switch (node.type) {
    case "output":
      return output(node, frame);
    case "if":
      return priced(node, [node.test, ...node.elifs.map(({ test }) => test)], branches(node, softFrame(frame), body));
    case "for":
      return priced(node, [node.over], compileFor(node, frame, body));
    case "assign": {
      const value = expression(node.value, frame);
      const assign = assigner(node.target, frame);
      return priced(node, [node.value], (cells) => {
        assign.check(cells);
        assign.set(cells, value(cells));
        return 0;
      });
    }
    case "assignBlock":
      return priced(node, [], assignBlock(node, frame, body));
    case "macro": {
      const macro = compileMacro(node, node.name, frame, body);
      const set = writer(frame, node.name);
      const { name } = node;
      return (cells) => {
        const made = macro(cells);
        set(cells, made);
        if (frame.toplevel) runtime.context.vars.set(name, made);
        return 0;
      };
    }
    case "callBlock": {
      const caller = compileMacro(node, undefined, frame, body);
      const call = compileCall(node.call, frame, expression, (cells, kwargs) => kwargs.set("caller", caller(cells)));
      return priced(node, [node.call], (cells) => {
        writeText(call(cells));
        return 0;
      });
    }
    case "generation": {
      const macro = compileMacro(node, undefined, frame, body);
      return priced(node, [], (cells) => {
        write(str(macro(cells).call([], undefined)));
        return 0;
      });
    }
    case "with":
      return withBlock(node, frame, body);
    case "filterBlock":
      return priced(node, [node.filter], filterBlock(node, frame, body));
    case "scope": {
      const inner = innerFrame(frame);
      inner.symbols.visitAll(node.body);
      return entered(inner, body(node.body, inner));
    }
    case "block":
      return priced(node, [], callBlock(node, frame, blocks));
    case "break":
    case "continue": {
      if (!frame.inLoop) syntaxError(`'${node.type}' outside loop`, node.line);
      const signal = node.type === "break" ? BREAK : CONTINUE;
      return () => signal;
    }
    case "loader":
      return priced(node, [], () => {
        throw new ChatTemplateError(`'${node.tag}' needs other templates, and there are none`);
      });
  }
}

function output(node: Extract<Statement, { type: "output" }>, frame: Frame): Run {
  const own = node.parts.filter((part) => typeof part !== "string");
  const parts = node.parts.map((part): string | Evaluate =>
    typeof part === "string" ? part : expression(part, frame),
  );
  const [only] = parts;
  if (parts.length === 1 && typeof only === "string")
    return priced(node, own, () => {
      write(only);
      return 0;
    });
  if (parts.length === 1 && typeof only === "function")
    return priced(node, own, (cells) => {
      write(str(only(cells)));
      return 0;
    });
  const lines = node.parts.map((part) => (typeof part === "string" ? node.line : part.line));
  return priced(node, own, (cells) => {
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i] as string | Evaluate;
      if (typeof part === "string") write(part);
      else {
        runtime.line = lines[i] as number;
        write(str(part(cells)));
      }
    }
    return 0;
  });
}

function branches(node: If, frame: Frame, body: CompileBody): Run {
  const tests = [node, ...node.elifs].map(
    (branch) => [expression(branch.test, frame), body(branch.body, frame)] as const,
  );
  const otherwise = body(node.otherwise, frame);
  const [[test, then] = [() => false, NOTHING] as const] = tests;
  if (tests.length === 1 && then.steps === undefined && otherwise.steps === undefined)
    return (cells) => (truthy(test(cells)) ? then(cells) : otherwise(cells));
  const chosen = (cells: Cells): Run => tests.find(([holds]) => truthy(holds(cells)))?.[1] ?? otherwise;
  const run: Run = (cells) => chosen(cells)(cells);
  if ([...tests.map(([, branch]) => branch), otherwise].every(({ steps }) => steps === undefined)) return run;
  run.steps = (cells) => inSteps([chosen(cells)])(cells);
  return run;
}

function assignBlock(node: Extract<Statement, { type: "assignBlock" }>, frame: Frame, body: CompileBody): Run {
  const inner = innerFrame(frame);
  inner.symbols.visitAll(node.body);
  if (node.filter !== undefined) inner.symbols.visit(node.filter);
  const run = entered(inner, body(node.body, inner));
  const filtered = blockFilter(node.filter, inner);
  const assign = assigner(node.target, frame);
  return (cells) => {
    const { text, signal } = capture(run, cells);
    if (signal !== 0) return signal;
    assign.check(cells);
    assign.set(cells, filtered(cells, text));
    return 0;
  };
}

/** Applies the filters of a block to its text. */
function blockFilter(filter: Expression | undefined, frame: Frame): (cells: Parameters<Run>[0], text: string) => Value {
  if (filter === undefined) return (_, text) => text;
  if (filter.type !== "filter") return typeError("not a filter");
  let given = "";
  const apply = compileFilterOrTest(filter, frame, expression, () => given);
  return (cells, text) => {
    given = text;
    return apply(cells);
  };
}

/** What a block gives must be text; only `{{ … }}` prints other values. */
function writeText(value: Value): void {
  write(textOf(value) ?? typeError(`expected str instance, ${typeName(value)} found`));
}

function filterBlock(node: Extract<Statement, { type: "filterBlock" }>, frame: Frame, body: CompileBody): Run {
  const inner = innerFrame(frame);
  inner.symbols.visitAll([...node.body, node.filter]);
  const run = entered(inner, body(node.body, inner));
  const filtered = blockFilter(node.filter, inner);
  return (cells) => {
    const { text, signal } = capture(run, cells);
    if (signal !== 0) return signal;
    writeText(filtered(cells, text));
    return 0;
  };
}

function withBlock(node: Extract<Statement, { type: "with" }>, frame: Frame, body: CompileBody): Run {
  const inner = innerFrame(frame);
  for (const target of node.targets) inner.symbols.visit(target);
  inner.symbols.visitAll(node.body);
  const start = enter(inner);
  const values = node.values.map((value) => expression(value, frame));
  const targets = node.targets.map((target) => assigner(target, inner));
  const run = body(node.body, inner);
  return priced(node, node.values, (cells) => {
    start?.(cells);
    for (const [i, target] of targets.entries()) target.set(cells, (values[i] as Evaluate)(cells));
    return run(cells);
  });
}
