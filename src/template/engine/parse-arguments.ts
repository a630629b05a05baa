/** The small parts of expressions: arguments, subscripts, names with dots. */
import type { Arguments, Expression } from "./ast.ts";
import type { TokenStream } from "./token-stream.ts";

type Parse = (s: TokenStream) => Expression;

/** What is between the brackets of `value[…]`: an expression or a slice. */
export function subscribed(s: TokenStream, parse: Parse): Expression {
  const { line } = s;
  let start: Expression | undefined;
  if (!s.isOperator(":")) {
    start = parse(s);
    if (!s.isOperator(":")) return start;
  }
  s.next();
  const ended = () => s.isOperator("]") || s.isOperator(",");
  const stop = s.isOperator(":") || ended() ? undefined : parse(s);
  const step = s.skipOperator(":") && !ended() ? parse(s) : undefined;
  return { type: "slice", start, stop, step, line };
}

export const NO_ARGUMENTS: Arguments = { args: [], kwargs: [], dynArgs: undefined, dynKwargs: undefined };

/** `(a, b, key=c, *more, **others)`. */
export function callArguments(s: TokenStream, parse: Parse): Arguments {
  const { line } = s.expectOperator("(");
  const args: Expression[] = [];
  const kwargs: { key: string; value: Expression }[] = [];
  let dynArgs: Expression | undefined;
  let dynKwargs: Expression | undefined;
  const ensure = (right: boolean): void => {
    if (!right) s.fail("invalid syntax for function call expression", line);
  };
  for (let first = true; !s.isOperator(")"); first = false) {
    if (!first) {
      s.expectOperator(",");
      if (s.isOperator(")")) break;
    }
    if (s.skipOperator("*")) {
      ensure(dynArgs === undefined && dynKwargs === undefined);
      dynArgs = parse(s);
    } else if (s.skipOperator("**")) {
      ensure(dynKwargs === undefined);
      dynKwargs = parse(s);
    } else if (s.is("name") && s.look().type === "operator" && s.look().text === "=") {
      ensure(dynKwargs === undefined);
      const key = s.next().text;
      s.next();
      if (kwargs.some((given) => given.key === key)) s.fail(`keyword argument repeated: ${key}`, line);
      kwargs.push({ key, value: parse(s) });
    } else {
      ensure(dynArgs === undefined && dynKwargs === undefined && kwargs.length === 0);
      args.push(parse(s));
    }
  }
  s.expectOperator(")");
  return { args, kwargs, dynArgs, dynKwargs };
}

/** `a.b.c`. */
export function dottedName(s: TokenStream): string {
  let name = s.expect("name").text;
  while (s.skipOperator(".")) name += `.${s.expect("name").text}`;
  return name;
}

/** A test without parentheses takes an argument if what follows can be one. */
export function takesArgument(s: TokenStream): boolean {
  if (s.is("name")) return !s.isName("else") && !s.isName("or") && !s.isName("and");
  return s.is("string") || s.is("number") || s.isOperator("[") || s.isOperator("{");
}
