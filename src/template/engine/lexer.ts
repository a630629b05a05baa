/**
 * Tokens of a template, as Jinja's lexer gives them with trim_blocks and lstrip_blocks on: text between tags already has the
 * whitespace removed that the tags around it ask for.
 */
import { ChatTemplateError } from "../errors.ts";
import { type Int, int } from "./numbers.ts";
import { strip } from "./strings.ts";
import { PyFloat } from "./values.ts";
import { isSpace, SPACE_CLASS } from "./whitespace.ts";

export type TokenType =
  | "data"
  | "variable_begin"
  | "variable_end"
  | "block_begin"
  | "block_end"
  | "name"
  | "string"
  | "number"
  | "operator"
  | "eof";

export interface Token {
  readonly type: TokenType;
  /** Text of a name, operator, string (without quotes and escapes) or of data. */
  readonly text: string;
  readonly number?: Int | PyFloat;
  readonly line: number;
}

/** A template that is wrong as it stands. */
export function syntaxError(message: string, line: number): never {
  throw new ChatTemplateError(message, { line });
}

const S = `[${SPACE_CLASS}]`;
const sticky = (source: string, flags = ""): RegExp => new RegExp(source, `sy${flags}`);

const TAG = new RegExp(`\\{%([-+]?)${S}*raw${S}*(?:-%\\}${S}*|%\\})|(\\{%|\\{\\{|\\{#)([-+]?)`, "g");
const COMMENT_END = new RegExp(`\\+#\\}|-#\\}${S}*|#\\}\\n?`, "g");
const RAW_END = new RegExp(`\\{%([-+]?)${S}*endraw${S}*(?:\\+%\\}|-%\\}${S}*|%\\}\\n?)`, "g");
const BLOCK_END = sticky(`\\+%\\}|-%\\}${S}*|%\\}\\n?`);
const VARIABLE_END = sticky(`-\\}\\}${S}*|\\}\\}`);
const SPACES = sticky(`${S}+`);
const FLOAT = sticky("(?<!\\.)(?:\\d+_)*\\d+(?:(?:\\.(?:\\d+_)*\\d+)?e[+-]?(?:\\d+_)*\\d+|\\.(?:\\d+_)*\\d+)", "i");
const INTEGER = sticky("0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\\da-f])+|[1-9](?:_?\\d)*|0(?:_?0)*", "i");
const NAME = sticky("[\\p{XID_Continue}\\w]+", "u");
const STRING = sticky(`'(?:[^'\\\\]|\\\\.)*'|"(?:[^"\\\\]|\\\\.)*"`);
const OPERATOR = sticky("//|\\*\\*|==|!=|>=|<=|[-+/*%~[\\](){}><=.:|,;]");
const CLOSES: Readonly<Record<string, string>> = { "{": "}", "(": ")", "[": "]" };

const countLines = (text: string): number => {
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
};

/** Throws a ChatTemplateError with the line where the text is no template. */
export function tokenize(template: string): Token[] {
  let source = template.replace(/\r\n?/g, "\n");
  if (source.endsWith("\n")) source = source.slice(0, -1);
  const tokens: Token[] = [];
  let at = 0;
  let line = 1;
  let lineStarting = true;

  const push = (type: TokenType, text: string): void => {
    tokens.push({ type, text, line });
  };
  const advance = (to: number): void => {
    line += countLines(source.slice(at, to));
    lineStarting = source[to - 1] === "\n";
    at = to;
  };
  /** Text before a tag. `plain`: the tag is no print statement, so spaces from the beginning of its line go as well. */
  const data = (end: number, sign: string, plain: boolean): void => {
    let text = source.slice(at, end);
    if (sign === "-") text = strip(text, undefined, "right");
    else if (sign !== "+" && plain) {
      const from = text.lastIndexOf("\n") + 1;
      if ((from > 0 || lineStarting) && isSpace(text.slice(from))) text = text.slice(0, from);
    }
    if (text !== "") push("data", text);
    line += countLines(source.slice(at, end));
    at = end;
  };
  const inside = (end: RegExp, endType: TokenType): void => {
    const open: string[] = [];
    for (;;) {
      end.lastIndex = at;
      const ended = open.length === 0 ? end.exec(source) : null;
      if (ended !== null) {
        push(endType, "");
        advance(end.lastIndex);
        return;
      }
      const token = nextToken(source, at, line);
      if (token === undefined) {
        if (at >= source.length) return;
        syntaxError(`unexpected char '${source[at]}'`, line);
      }
      if (token.type === "operator") balance(open, token.text, line);
      if (token.type !== "space") tokens.push({ type: token.type, text: token.text, line, ...token.value });
      advance(token.end);
    }
  };

  for (;;) {
    TAG.lastIndex = at;
    const tag = TAG.exec(source);
    if (tag === null) break;
    const [whole, rawSign, opener, sign = ""] = tag;
    data(tag.index, rawSign ?? sign, opener !== "{{");
    advance(tag.index + whole.length);
    // Jinja takes an opener at the very end for nothing
    if (at === source.length && opener !== "{%" && opener !== "{{") break;
    if (opener === undefined) {
      RAW_END.lastIndex = at;
      const end = RAW_END.exec(source) ?? syntaxError("Missing end of raw directive", line);
      data(end.index, end[1] ?? "", true);
      advance(end.index + end[0].length);
    } else if (opener === "{#") {
      COMMENT_END.lastIndex = at;
      const end = COMMENT_END.exec(source) ?? syntaxError("Missing end of comment tag", line);
      advance(end.index + end[0].length);
    } else {
      push(opener === "{%" ? "block_begin" : "variable_begin", "");
      if (opener === "{%") inside(BLOCK_END, "block_end");
      else inside(VARIABLE_END, "variable_end");
    }
  }
  if (at < source.length) push("data", source.slice(at));
  push("eof", "");
  return tokens;
}

function balance(open: string[], operator: string, line: number): void {
  const close = CLOSES[operator];
  if (close !== undefined) open.push(close);
  else if (operator === "}" || operator === ")" || operator === "]") {
    const expected = open.pop() ?? syntaxError(`unexpected '${operator}'`, line);
    if (expected !== operator) syntaxError(`unexpected '${operator}', expected '${expected}'`, line);
  }
}

interface Found {
  readonly type: TokenType | "space";
  readonly text: string;
  readonly value?: { readonly number: Int | PyFloat };
  readonly end: number;
}

function match(pattern: RegExp, source: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0];
}

function nextToken(source: string, at: number, line: number): Found | undefined {
  let text = match(SPACES, source, at);
  if (text !== undefined) return { type: "space", text, end: at + text.length };
  text = match(FLOAT, source, at);
  if (text !== undefined)
    return {
      type: "number",
      text,
      value: { number: new PyFloat(Number(text.replaceAll("_", ""))) },
      end: at + text.length,
    };
  text = match(INTEGER, source, at);
  if (text !== undefined) {
    if (text.length > 4300) syntaxError("an integer with too many digits", line);
    return { type: "number", text, value: { number: int(BigInt(text.replaceAll("_", ""))) }, end: at + text.length };
  }
  text = match(NAME, source, at);
  if (text !== undefined) {
    if (!/^[\p{XID_Start}_]/u.test(text)) syntaxError("Invalid character in identifier", line);
    return { type: "name", text, end: at + text.length };
  }
  text = match(STRING, source, at);
  if (text !== undefined) return { type: "string", text: unescaped(text.slice(1, -1), line), end: at + text.length };
  text = match(OPERATOR, source, at);
  return text === undefined ? undefined : { type: "operator", text, end: at + text.length };
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

/** Characters that `\N{…}` may name: those that templates print. The whole table has 34,000 names. */
const CHARACTERS: Readonly<Record<string, string>> = {
  BULLET: "\u2022",
  "EM DASH": "\u2014",
  "EN DASH": "\u2013",
  "HORIZONTAL ELLIPSIS": "\u2026",
  "LEFTWARDS ARROW": "\u2190",
  "MIDDLE DOT": "\u00b7",
  "NO-BREAK SPACE": "\u00a0",
  "RIGHTWARDS ARROW": "\u2192",
  "FULLWIDTH VERTICAL LINE": "\uff5c",
  "LOWER ONE EIGHTH BLOCK": "\u2581",
  "ZERO WIDTH SPACE": "\u200b",
  "ZERO WIDTH NON-JOINER": "\u200c",
  "ZERO WIDTH JOINER": "\u200d",
};

/** Escapes of a Python str literal; unknown ones stay as they are. */
function unescaped(text: string, line: number): string {
  if (!text.includes("\\")) return text;
  return text.replace(
    /\\(?:N\{([^}]*)\}|([0-7]{1,3})|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([\s\S]))/g,
    (whole, name?: string, octal?: string, byte?: string, short?: string, long?: string, other = "") => {
      if (name !== undefined)
        return CHARACTERS[name.toUpperCase()] ?? syntaxError(`the character name '${name}' is not known here`, line);
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
      const hex = byte ?? short ?? long;
      if (hex !== undefined) {
        const code = Number.parseInt(hex, 16);
        return code > 0x10ffff ? syntaxError("illegal Unicode character", line) : String.fromCodePoint(code);
      }
      if ("xuUN".includes(other) && other !== "") syntaxError(`truncated \\${other} escape`, line);
      return ESCAPES[other] ?? whole;
    },
  );
}
