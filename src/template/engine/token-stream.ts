/** The tokens of a template with a place in them. */
import { syntaxError, type Token, type TokenType, tokenize } from "./lexer.ts";

/** Expressions inside of expressions, and tags inside of tags. Python's own limits are about 80 and 20. */
const MAX_NESTING = 100;
/** Parts of one chain: `a + b + …`, `a | f | …`, `a.b.…`. */
const MAX_CHAIN = 400;

export class TokenStream {
  private readonly tokens: readonly Token[];
  private at = 0;
  private nesting = 0;
  current: Token;

  constructor(source: string) {
    this.tokens = tokenize(source);
    this.current = this.tokens[0] as Token;
  }

  get line(): number {
    return this.current.line;
  }

  /** The current token; goes on to the next one. */
  next(): Token {
    const token = this.current;
    if (this.at < this.tokens.length - 1) this.current = this.tokens[++this.at] as Token;
    return token;
  }

  look(): Token {
    return this.tokens[Math.min(this.at + 1, this.tokens.length - 1)] as Token;
  }

  is(type: TokenType, text?: string): boolean {
    return this.current.type === type && (text === undefined || this.current.text === text);
  }
  isName(text: string): boolean {
    return this.is("name", text);
  }
  isOperator(text: string): boolean {
    return this.is("operator", text);
  }

  skip(type: TokenType, text?: string): boolean {
    if (!this.is(type, text)) return false;
    this.next();
    return true;
  }
  skipName(text: string): boolean {
    return this.skip("name", text);
  }
  skipOperator(text: string): boolean {
    return this.skip("operator", text);
  }

  expect(type: TokenType, text?: string): Token {
    if (this.is(type, text)) return this.next();
    const wanted = text ?? NAMES[type] ?? type;
    if (this.current.type === "eof") this.fail(`unexpected end of template, expected '${wanted}'`);
    return this.fail(`expected token '${wanted}', got '${this.describe()}'`);
  }
  expectOperator(text: string): Token {
    return this.expect("operator", text);
  }

  describe(token = this.current): string {
    if (token.type === "name" || token.type === "operator") return token.text;
    return NAMES[token.type] ?? token.type;
  }

  fail(message: string, line = this.current.line): never {
    return syntaxError(message, line);
  }

  /** Parses one level deeper. */
  nested<T>(parse: () => T): T {
    if (++this.nesting > MAX_NESTING) this.fail("the template is nested too deeply");
    const result = parse();
    this.nesting--;
    return result;
  }

  /** To be called for each further part of a chain; gives its length so far. */
  chain(length: number): number {
    if (length >= MAX_CHAIN) this.fail("an expression of the template is too long");
    return length + 1;
  }
}

const NAMES: Readonly<Partial<Record<TokenType, string>>> = {
  block_begin: "begin of statement block",
  block_end: "end of statement block",
  variable_begin: "begin of print statement",
  variable_end: "end of print statement",
  data: "template data / text",
  eof: "end of template",
};
