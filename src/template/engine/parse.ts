/** Statements of templates. */
import type { Body, Call, Expression, If, Name, Statement } from "./ast.ts";
import { syntaxError } from "./lexer.ts";
import { parseExpression, parseFilter, parseTuple, type TupleOptions } from "./parse-expression.ts";
import { TokenStream } from "./token-stream.ts";
import { isSpace } from "./whitespace.ts";

/** The syntax tree of a template. Throws a ChatTemplateError with the line of what is wrong. */
export function parse(source: string): Body {
  const s = new TokenStream(source);
  return body(s, undefined);
}

/** Text and tags up to one of the tags named; the stream stands on that tag's name then. */
function body(s: TokenStream, ends: readonly string[] | undefined): Body {
  const statements: Statement[] = [];
  let parts: (string | Expression)[] = [];
  let partsLine = s.line;
  const add = (part: string | Expression, line: number): void => {
    if (parts.length === 0) partsLine = line;
    parts.push(part);
  };
  const flush = (): void => {
    if (parts.length > 0) statements.push({ type: "output", parts, line: partsLine });
    parts = [];
  };
  while (!s.is("eof")) {
    const { type, text, line } = s.next();
    if (type === "data") add(text, line);
    else if (type === "variable_begin") {
      add(parseTuple(s), line);
      s.expect("variable_end");
    } else {
      flush();
      if (ends !== undefined && s.is("name") && ends.includes(s.current.text)) return statements;
      statements.push(s.nested(() => statement(s)));
      s.expect("block_end");
    }
  }
  flush();
  if (ends !== undefined)
    s.fail(`Unexpected end of template. Looked for: ${ends.map((end) => `'${end}'`).join(" or ")}`);
  return statements;
}

/** What is between a tag and its end tag; `drop`: the end tag's name is taken, too. */
function block(s: TokenStream, ...ends: readonly string[]): Body {
  s.skipOperator(":");
  s.expect("block_end");
  return body(s, ends);
}
function blockTo(s: TokenStream, end: string): Body {
  const inner = block(s, end);
  s.next();
  return inner;
}

const PARSERS: Readonly<Record<string, (s: TokenStream) => Statement>> = Object.assign(Object.create(null), {
  for: parseFor,
  if: parseIf,
  set: parseSet,
  macro: parseMacro,
  call: parseCallBlock,
  filter: parseFilterBlock,
  with: parseWith,
  block: parseBlock,
  print: parsePrint,
  generation: (s: TokenStream): Statement => ({
    type: "generation",
    args: [],
    defaults: [],
    line: s.next().line,
    body: blockTo(s, "endgeneration"),
  }),
  break: (s: TokenStream): Statement => ({ type: "break", line: s.next().line }),
  continue: (s: TokenStream): Statement => ({ type: "continue", line: s.next().line }),
  autoescape: parseAutoescape,
  include: parseLoader,
  import: parseLoader,
  from: parseLoader,
  extends: parseLoader,
});

function statement(s: TokenStream): Statement {
  const { text, line } = s.current;
  if (!s.is("name")) s.fail("tag name expected");
  const parser = PARSERS[text];
  if (parser === undefined) return s.fail(`Encountered unknown tag '${text}'`, line);
  return parser(s);
}

function canAssign(target: Expression): boolean {
  return (
    target.type === "name" || target.type === "namespace" || (target.type === "tuple" && target.items.every(canAssign))
  );
}

function setContext(target: Expression, context: "store" | "param"): void {
  if (target.type === "name") target.context = context;
  else if (target.type === "tuple") for (const item of target.items) setContext(item, context);
}

function assignTarget(s: TokenStream, options: TupleOptions): Expression {
  const target = parseTuple(s, { simple: true, ...options });
  if (!canAssign(target)) s.fail(`can't assign to '${target.type}'`, target.line);
  setContext(target, "store");
  return target;
}

const CONSTANTS = new Set(["true", "false", "none", "True", "False", "None"]);

function targetName(s: TokenStream): Name {
  const { text, line } = s.expect("name");
  if (CONSTANTS.has(text)) s.fail(`can't assign to '${text}'`, line);
  return { type: "name", name: text, context: "store", line };
}

function parseFor(s: TokenStream): Statement {
  const { line } = s.next();
  const target = assignTarget(s, {});
  s.expect("name", "in");
  const over = parseTuple(s, { conditions: false });
  const test = s.skipName("if") ? parseExpression(s) : undefined;
  const recursive = s.skipName("recursive");
  const inner = block(s, "endfor", "else");
  const otherwise = s.next().text === "endfor" ? [] : blockTo(s, "endfor");
  if (namesOf(target).includes("loop")) s.fail("Can't assign to special loop variable in for-loop target", line);
  return { type: "for", target, over, test, recursive, body: inner, otherwise, line };
}

const namesOf = (target: Expression): string[] =>
  target.type === "name" ? [target.name] : target.type === "tuple" ? target.items.flatMap(namesOf) : [];

function parseIf(s: TokenStream): Statement {
  const { line } = s.next();
  const test = parseTuple(s, { conditions: false });
  const inner = block(s, "elif", "else", "endif");
  const elifs: If[] = [];
  for (;;) {
    const { text, line: branchLine } = s.next();
    if (text === "elif") {
      const branch = parseTuple(s, { conditions: false });
      elifs.push({
        type: "if",
        test: branch,
        body: block(s, "elif", "else", "endif"),
        elifs: [],
        otherwise: [],
        line: branchLine,
      });
    } else {
      const otherwise = text === "else" ? blockTo(s, "endif") : [];
      return { type: "if", test, body: inner, elifs, otherwise, line };
    }
  }
}

function parseSet(s: TokenStream): Statement {
  const { line } = s.next();
  const target = assignTarget(s, { namespaces: true });
  if (s.skipOperator("=")) return { type: "assign", target, value: parseTuple(s), line };
  const filter = parseFilter(s, undefined);
  return { type: "assignBlock", target, filter, body: blockTo(s, "endset"), line };
}

function parameters(s: TokenStream): { args: Name[]; defaults: Expression[] } {
  const args: Name[] = [];
  const defaults: Expression[] = [];
  s.expectOperator("(");
  while (!s.isOperator(")")) {
    if (args.length > 0) s.expectOperator(",");
    const arg = targetName(s);
    arg.context = "param";
    if (args.some(({ name }) => name === arg.name)) s.fail(`duplicate argument '${arg.name}'`);
    if (s.skipOperator("=")) defaults.push(parseExpression(s));
    else if (defaults.length > 0) s.fail("non-default argument follows default argument");
    args.push(arg);
  }
  s.expectOperator(")");
  return { args, defaults };
}

function parseMacro(s: TokenStream): Statement {
  const { line } = s.next();
  const { name } = targetName(s);
  return { type: "macro", name, ...parameters(s), body: blockTo(s, "endmacro"), line };
}

function parseCallBlock(s: TokenStream): Statement {
  const { line } = s.next();
  const given = s.isOperator("(") ? parameters(s) : { args: [], defaults: [] };
  const call = parseExpression(s);
  if (call.type !== "call") s.fail("expected call", line);
  return { type: "callBlock", ...given, call: call as Call, body: blockTo(s, "endcall"), line };
}

function parseFilterBlock(s: TokenStream): Statement {
  const { line } = s.next();
  const filter = parseFilter(s, undefined, true) as Expression;
  return { type: "filterBlock", filter, body: blockTo(s, "endfilter"), line };
}

function parseWith(s: TokenStream): Statement {
  const { line } = s.next();
  const targets: Expression[] = [];
  const values: Expression[] = [];
  while (!s.is("block_end")) {
    if (targets.length > 0) s.expectOperator(",");
    const target = assignTarget(s, {});
    setContext(target, "param");
    targets.push(target);
    s.expectOperator("=");
    values.push(parseExpression(s));
  }
  return { type: "with", targets, values, body: blockTo(s, "endwith"), line };
}

function parseBlock(s: TokenStream): Statement {
  const { line } = s.next();
  const name = s.expect("name").text;
  const scoped = s.skipName("scoped");
  const required = s.skipName("required");
  if (s.isOperator("-")) s.fail("Block names may not contain hyphens, use an underscore instead");
  const inner = blockTo(s, "endblock");
  const blank = (part: string | Expression) => typeof part === "string" && isSpace(part);
  if (required && !inner.every((node) => node.type === "output" && node.parts.every(blank)))
    s.fail("Required blocks can only contain comments or whitespace");
  s.skipName(name);
  return { type: "block", name, scoped, required, body: inner, line };
}

function parsePrint(s: TokenStream): Statement {
  const { line } = s.next();
  const parts: Expression[] = [];
  while (!s.is("block_end")) {
    if (parts.length > 0) s.expectOperator(",");
    parts.push(parseExpression(s));
  }
  return { type: "output", parts, line };
}

/** Prompts are not HTML: `autoescape false` is what holds anyway. */
function parseAutoescape(s: TokenStream): Statement {
  const { line } = s.next();
  const value = parseExpression(s);
  if (value.type !== "constant" || value.value !== false) syntaxError("'autoescape' is not supported", line);
  return { type: "scope", body: blockTo(s, "endautoescape"), line };
}

/** There is nothing that other templates could be loaded from: these tags fail when they are reached. */
function parseLoader(s: TokenStream): Statement {
  const { text: tag, line } = s.next();
  const stores: string[] = [];
  parseExpression(s);
  if (tag === "import") {
    s.expect("name", "as");
    stores.push(targetName(s).name);
  } else if (tag === "from") {
    s.expect("name", "import");
    for (let first = true; first || s.skipOperator(","); first = false) {
      const { name } = targetName(s);
      stores.push(s.skipName("as") ? targetName(s).name : name);
    }
  } else if (tag === "include" && s.skipName("ignore")) s.expect("name", "missing");
  if (tag !== "extends" && (s.isName("with") || s.isName("without"))) {
    s.next();
    s.expect("name", "context");
  }
  return { type: "loader", tag, stores, line };
}
