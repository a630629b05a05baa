/** Macros and the bodies of call blocks. */
import type { MacroLike } from "./ast.ts";
import { expression } from "./compile-expression.ts";
import type { CompileBody } from "./compile-target.ts";
import { enter, type Frame, FunctionScope, innerFrame, writer } from "./frames.ts";
import { syntaxError } from "./lexer.ts";
import { Macro, type MacroShape } from "./macro.ts";
import type { Cells } from "./runtime.ts";
import { undeclared } from "./symbols.ts";
import { Undefined } from "./values.ts";

/** Gives the macro for the variables around it at run time. */
export function compileMacro(
  node: MacroLike,
  name: string | undefined,
  frame: Frame,
  body: CompileBody,
): (cells: Cells) => Macro {
  const inner = innerFrame(frame, new FunctionScope(frame.scope), false);
  const args = node.args.map((arg) => arg.name);
  const read = undeclared(node.body, ["caller", "kwargs", "varargs"]);
  const explicitCaller = args.indexOf("caller");
  const firstDefault = args.length - node.defaults.length;
  if (read.has("caller") && explicitCaller >= 0 && explicitCaller < firstDefault)
    syntaxError('the special "caller" argument must be omitted or be given a default', node.line);

  const special = [
    read.has("caller") && explicitCaller < 0 ? "caller" : undefined,
    read.has("kwargs") && !args.includes("kwargs") ? "kwargs" : undefined,
    read.has("varargs") && !args.includes("varargs") ? "varargs" : undefined,
  ].filter((each) => each !== undefined);
  for (const each of [...args, ...special]) inner.symbols.parameter(each);
  inner.symbols.visitAll([...node.defaults, ...node.body]);

  const setters = [...args, ...special].map((each) => writer(inner, each));
  const defaults = node.defaults.map((value) => expression(value, inner));
  const start = enter(inner);
  const shape: MacroShape = {
    name,
    args,
    caller: read.has("caller"),
    kwargs: special.includes("kwargs"),
    varargs: special.includes("varargs"),
    bind(cells, values) {
      start?.(cells);
      for (const [i, set] of setters.entries()) set(cells, values[i]);
      for (let i = 0; i < args.length; i++) {
        if (values[i] !== undefined) continue;
        const value = defaults[i - firstDefault];
        const missing = () => new Undefined(`parameter '${args[i]}' was not provided`);
        setters[i]?.(cells, value === undefined ? missing() : value(cells));
      }
    },
    body: body(node.body, inner),
  };
  return (cells) => new Macro(shape, cells);
}
