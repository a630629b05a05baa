/** Expressions of templates, with the precedence that Jinja gives its operators. */
import type { Call, Comparison, Expression, FilterOrTest } from "./ast.ts";
import { callArguments, dottedName, NO_ARGUMENTS, subscribed, takesArgument } from "./parse-arguments.ts";
import type { TokenStream } from "./token-stream.ts";

export interface TupleOptions {
  /** Names only, as the target of an assignment. */
  readonly simple?: boolean;
  /** `ns.name` is a target, too. */
  readonly namespaces?: boolean;
  readonly conditions?: boolean;
  /** An empty one is allowed. */
  readonly parentheses?: boolean;
}

export function parseExpression(s: TokenStream, conditions = true): Expression {
  return s.nested(() => (conditions ? condition(s) : or(s)));
}

function condition(s: TokenStream): Expression {
  let { line } = s;
  let expression = or(s);
  for (let length = 0; s.skipName("if"); length = s.chain(length)) {
    const test = or(s);
    const otherwise = s.skipName("else") ? s.nested(() => condition(s)) : undefined;
    expression = { type: "condition", test, yes: expression, otherwise, line };
    line = s.line;
  }
  return expression;
}

function or(s: TokenStream): Expression {
  let left = and(s);
  for (let length = 0; s.isName("or"); length = s.chain(length)) {
    const { line } = s.next();
    left = { type: "or", left, right: and(s), line };
  }
  return left;
}

function and(s: TokenStream): Expression {
  let left = not(s);
  for (let length = 0; s.isName("and"); length = s.chain(length)) {
    const { line } = s.next();
    left = { type: "and", left, right: not(s), line };
  }
  return left;
}

function not(s: TokenStream): Expression {
  if (!s.isName("not")) return compare(s);
  const { line } = s.next();
  return { type: "not", value: s.nested(() => not(s)), line };
}

const COMPARISONS = new Set(["==", "!=", "<", "<=", ">", ">="]);

function compare(s: TokenStream): Expression {
  const { line } = s;
  const first = sum(s);
  const rest: { operator: Comparison; value: Expression }[] = [];
  for (;;) {
    s.chain(rest.length);
    if (s.is("operator") && COMPARISONS.has(s.current.text))
      rest.push({ operator: s.next().text as Comparison, value: sum(s) });
    else if (s.skipName("in")) rest.push({ operator: "in", value: sum(s) });
    else if (s.isName("not") && s.look().type === "name" && s.look().text === "in") {
      s.next();
      s.next();
      rest.push({ operator: "not in", value: sum(s) });
    } else return rest.length === 0 ? first : { type: "compare", first, rest, line };
  }
}

function sum(s: TokenStream): Expression {
  let left = concat(s);
  for (let length = 0; s.isOperator("+") || s.isOperator("-"); length = s.chain(length)) {
    const { text, line } = s.next();
    left = { type: "binary", operator: text as "+" | "-", left, right: concat(s), line };
  }
  return left;
}

function concat(s: TokenStream): Expression {
  const { line } = s;
  const parts = [product(s)];
  while (s.skipOperator("~")) {
    parts.push(product(s));
    s.chain(parts.length);
  }
  return parts.length === 1 ? (parts[0] as Expression) : { type: "concat", parts, line };
}

const PRODUCTS = new Set(["*", "/", "//", "%"]);

function product(s: TokenStream): Expression {
  let left = power(s);
  for (let length = 0; s.is("operator") && PRODUCTS.has(s.current.text); length = s.chain(length)) {
    const { text, line } = s.next();
    left = { type: "binary", operator: text as "*" | "/" | "//" | "%", left, right: power(s), line };
  }
  return left;
}

function power(s: TokenStream): Expression {
  let left = unary(s, true);
  for (let length = 0; s.isOperator("**"); length = s.chain(length)) {
    const { line } = s.next();
    left = { type: "binary", operator: "**", left, right: unary(s, true), line };
  }
  return left;
}

function unary(s: TokenStream, filters: boolean): Expression {
  let node: Expression;
  if (s.isOperator("-") || s.isOperator("+")) {
    const { text, line } = s.next();
    node = { type: "unary", operator: text as "-" | "+", value: s.nested(() => unary(s, false)), line };
  } else node = primary(s, false);
  node = postfix(s, node);
  return filters ? filterExpression(s, node) : node;
}

const TRUE_FALSE: Readonly<Record<string, boolean>> = { true: true, True: true, false: false, False: false };

function primary(s: TokenStream, namespaces: boolean): Expression {
  const { line } = s;
  const token = s.current;
  if (token.type === "name") {
    s.next();
    if (Object.hasOwn(TRUE_FALSE, token.text))
      return { type: "constant", value: token.text.toLowerCase() === "true", line };
    if (token.text === "none" || token.text === "None") return { type: "constant", value: null, line };
    if (namespaces && s.skipOperator("."))
      return { type: "namespace", name: token.text, attribute: s.expect("name").text, line };
    return { type: "name", name: token.text, context: "load", line };
  }
  if (token.type === "string") {
    let value = "";
    while (s.is("string")) value += s.next().text;
    return { type: "constant", value, line };
  }
  if (token.type === "number") {
    s.next();
    return { type: "constant", value: token.number ?? 0, line };
  }
  if (s.skipOperator("(")) {
    const inner = parseTuple(s, { parentheses: true });
    s.expectOperator(")");
    return inner;
  }
  if (s.skipOperator("[")) return { type: "list", items: listItems(s, "]"), line };
  if (s.skipOperator("{")) return dict(s, line);
  return s.fail(`unexpected '${s.describe()}'`);
}

function listItems(s: TokenStream, close: string): Expression[] {
  const items: Expression[] = [];
  while (!s.isOperator(close)) {
    if (items.length > 0) s.expectOperator(",");
    if (s.isOperator(close)) break;
    items.push(parseExpression(s));
  }
  s.expectOperator(close);
  return items;
}

function dict(s: TokenStream, line: number): Expression {
  const pairs: { key: Expression; value: Expression }[] = [];
  while (!s.isOperator("}")) {
    if (pairs.length > 0) s.expectOperator(",");
    if (s.isOperator("}")) break;
    const key = parseExpression(s);
    s.expectOperator(":");
    pairs.push({ key, value: parseExpression(s) });
  }
  s.expectOperator("}");
  return { type: "dict", pairs, line };
}

/** One expression, or several with commas between. */
export function parseTuple(s: TokenStream, options: TupleOptions = {}): Expression {
  const { line } = s;
  const items: Expression[] = [];
  let isTuple = false;
  for (;;) {
    if (items.length > 0) s.expectOperator(",");
    if (s.is("variable_end") || s.is("block_end") || s.isOperator(")")) break;
    items.push(
      options.simple === true
        ? s.nested(() => primary(s, options.namespaces === true))
        : parseExpression(s, options.conditions !== false),
    );
    if (!s.isOperator(",")) break;
    isTuple = true;
  }
  if (!isTuple) {
    if (items[0] !== undefined) return items[0];
    if (options.parentheses !== true) s.fail(`Expected an expression, got '${s.describe()}'`);
  }
  return { type: "tuple", items, line };
}

function postfix(s: TokenStream, start: Expression): Expression {
  let node = start;
  for (let length = 0; ; length = s.chain(length)) {
    if (s.isOperator(".") || s.isOperator("[")) node = subscript(s, node);
    else if (s.isOperator("(")) node = call(s, node);
    else return node;
  }
}

function filterExpression(s: TokenStream, start: Expression): Expression {
  let node = start;
  for (let length = 0; ; length = s.chain(length)) {
    if (s.isOperator("|")) node = parseFilter(s, node) as Expression;
    else if (s.isName("is")) node = test(s, node);
    else if (s.isOperator("(")) node = call(s, node);
    else return node;
  }
}

function subscript(s: TokenStream, value: Expression): Expression {
  const { text, line } = s.next();
  if (text === ".") {
    const token = s.next();
    if (token.type === "name") return { type: "attribute", value, name: token.text, line };
    if (token.type !== "number" || typeof token.number === "object" || token.number === undefined)
      s.fail("expected name or number", token.line);
    return { type: "item", value, key: { type: "constant", value: token.number, line }, line };
  }
  const keys: Expression[] = [];
  while (!s.isOperator("]")) {
    if (keys.length > 0) s.expectOperator(",");
    keys.push(subscribed(s, parseExpression));
  }
  s.expectOperator("]");
  const [key] = keys;
  return {
    type: "item",
    value,
    key: keys.length === 1 && key !== undefined ? key : { type: "tuple", items: keys, line },
    line,
  };
}

function call(s: TokenStream, callee: Expression): Call {
  const { line } = s;
  return { type: "call", callee, ...callArguments(s, parseExpression), line };
}

/** Filters on a value, or on the text of a block (`value` undefined, the first one without `|` if `inline`). */
export function parseFilter(s: TokenStream, value: Expression | undefined, inline = false): Expression | undefined {
  let node = value;
  let start = inline;
  for (let length = 0; start || s.isOperator("|"); length = s.chain(length)) {
    if (!start) s.next();
    const { line } = s;
    const name = dottedName(s);
    node = {
      type: "filter",
      value: node,
      name,
      ...(s.isOperator("(") ? callArguments(s, parseExpression) : NO_ARGUMENTS),
      line,
    };
    start = false;
  }
  return node;
}

function test(s: TokenStream, value: Expression): Expression {
  const { line } = s.next();
  const negated = s.skipName("not");
  const name = dottedName(s);
  let args = NO_ARGUMENTS;
  if (s.isOperator("(")) args = callArguments(s, parseExpression);
  else if (takesArgument(s)) {
    if (s.isName("is")) s.fail("You cannot chain multiple tests with is");
    args = {
      ...NO_ARGUMENTS,
      args: [
        postfix(
          s,
          s.nested(() => primary(s, false)),
        ),
      ],
    };
  }
  const node: FilterOrTest = { type: "test", value, name, ...args, line };
  return negated ? { type: "not", value: node, line } : node;
}
