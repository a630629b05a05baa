import { type Input, isSpace, peek, type Step, skipSpace } from "./input.ts";
import {
  APOSTROPHE,
  CLOSE_LIST,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  escapeJson,
  OPEN_LIST,
  OPEN_OBJECT,
  type Outcome,
  QUOTE,
} from "./json.ts";

import { CODE_START } from "./markers.ts";
import { wordAsJson } from "./words.ts";

const OPEN_TUPLE = 40;
const CLOSE_TUPLE = 41;
const BACKSLASH = 92;
const MAX_DEPTH = 64;
const MAX_WORD = 4096;

/** Letters of names: also any letter outside ASCII, and what tool names have beside identifiers. */
export function isNamePart(c: number): boolean {
  return (
    (c >= 97 && c <= 122) ||
    (c >= 65 && c <= 90) ||
    (c >= 48 && c <= 57) ||
    c === 95 ||
    c === 45 ||
    c === 46 ||
    (c > 127 && c !== CODE_START)
  );
}

/** Reads a Python literal and gives it out as JSON, as it comes. Bare names become strings. */
export function* pythonValue(input: Input, emit: (json: string) => void, depth = 0): Step<Outcome> {
  const c = yield* peek(input);
  if (c < 0) return "cut";
  if (depth > MAX_DEPTH) return "broken";
  if (c === QUOTE || c === APOSTROPHE) return yield* quotedAsJson(input, emit);
  if (c === OPEN_LIST) return yield* sequence(input, emit, CLOSE_LIST, depth);
  if (c === OPEN_TUPLE) return yield* sequence(input, emit, CLOSE_TUPLE, depth);
  if (c === OPEN_OBJECT) return yield* dictionary(input, emit, depth);
  return yield* word(input, emit);
}

function* quotedAsJson(input: Input, emit: (json: string) => void): Step<Outcome> {
  emit('"');
  for (;;) {
    const outcome = yield* pythonString(input, (text) => emit(escapeJson(text)));
    if (outcome !== "done") return outcome;
    // Strings that stand side by side are one.
    const c = yield* skipSpace(input);
    if (c !== QUOTE && c !== APOSTROPHE) break;
  }
  emit('"');
  return "done";
}

function* sequence(input: Input, emit: (json: string) => void, closer: number, depth: number): Step<Outcome> {
  input.at++;
  emit("[");
  for (let count = 0; ; count++) {
    let c = yield* skipSpace(input);
    if (c === closer) break;
    if (count > 0) {
      if (c < 0) return "cut";
      if (c !== COMMA) return "broken";
      input.at++;
      c = yield* skipSpace(input);
      if (c === closer) break;
      if (c >= 0) emit(", ");
    }
    const outcome = yield* pythonValue(input, emit, depth + 1);
    if (outcome !== "done") return outcome;
  }
  input.at++;
  emit("]");
  return "done";
}

function* dictionary(input: Input, emit: (json: string) => void, depth: number): Step<Outcome> {
  input.at++;
  emit("{");
  for (let count = 0; ; count++) {
    let c = yield* skipSpace(input);
    if (c === CLOSE_OBJECT) break;
    if (count > 0) {
      if (c < 0) return "cut";
      if (c !== COMMA) return "broken";
      input.at++;
      c = yield* skipSpace(input);
      if (c === CLOSE_OBJECT) break;
      if (c >= 0) emit(", ");
    }
    const key = yield* dictionaryKey(input, c, emit);
    if (key !== "done") return key;
    const colon = yield* skipSpace(input);
    if (colon < 0) return "cut";
    if (colon !== COLON) return "broken";
    input.at++;
    yield* skipSpace(input);
    emit(": ");
    const outcome = yield* pythonValue(input, emit, depth + 1);
    if (outcome !== "done") return outcome;
  }
  input.at++;
  emit("}");
  return "done";
}

/** Keys that are no strings become strings: JSON knows no others. */
function* dictionaryKey(input: Input, c: number, emit: (json: string) => void): Step<Outcome> {
  if (c === QUOTE || c === APOSTROPHE) return yield* quotedAsJson(input, emit);
  return yield* word(input, (json) => emit(json.startsWith('"') ? json : `"${json}"`));
}

function* word(input: Input, emit: (json: string) => void): Step<Outcome> {
  let text = "";
  for (;;) {
    const c = yield* peek(input);
    if (c < 0 || !(isNamePart(c) || c === 43)) break;
    if (text.length >= MAX_WORD) return "broken";
    text += input.text[input.at++];
  }
  if (text === "") return input.ended && input.at >= input.text.length ? "cut" : "broken";
  // A word at the end of the text may go on.
  if (input.ended && input.at >= input.text.length) return "cut";
  emit(wordAsJson(text) ?? JSON.stringify(text));
  return "done";
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  v: "\v",
  "\n": "",
  "/": "/",
};
const HEX_LENGTHS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** Reads a Python string, whose quote is next, and gives out what it says. Three quotes are known too. */
export function* pythonString(input: Input, emit: (text: string) => void): Step<Outcome> {
  const quote = yield* peek(input);
  input.at++;
  let triple = false;
  if ((yield* peek(input)) === quote) {
    input.at++;
    if ((yield* peek(input)) !== quote) return "done";
    input.at++;
    triple = true;
  }
  let quotes = 0;
  for (;;) {
    const { text } = input;
    let i = input.at;
    while (i < text.length && text.charCodeAt(i) !== quote && text.charCodeAt(i) !== BACKSLASH) i++;
    if (i > input.at) {
      if (quotes > 0) emit(String.fromCharCode(quote).repeat(quotes));
      quotes = 0;
      emit(input.plain(text.slice(input.at, i)));
    }
    input.at = i;
    const c = yield* peek(input);
    if (c < 0) return "cut";
    if (c === quote) {
      input.at++;
      if (!triple || ++quotes === 3) return "done";
    } else if (c === BACKSLASH) {
      if (quotes > 0) emit(String.fromCharCode(quote).repeat(quotes));
      quotes = 0;
      const said = yield* pythonEscape(input);
      if (said === undefined) return "cut";
      if (said !== "") emit(said);
    }
  }
}

function* pythonEscape(input: Input): Step<string | undefined> {
  input.at++;
  const next = yield* peek(input);
  if (next < 0) return undefined;
  if (next === CODE_START) return "\\";
  const letter = input.text[input.at++]!;
  const length = HEX_LENGTHS[letter];
  if (length === undefined) return ESCAPES[letter] ?? `\\${letter}`;
  let digits = "";
  while (digits.length < length) {
    const c = yield* peek(input);
    if (c < 0) return undefined;
    if (!/[0-9a-fA-F]/.test(String.fromCharCode(c))) return `\\${letter}${digits}`;
    digits += input.text[input.at++];
  }
  const code = Number.parseInt(digits, 16);
  if (code > 0x10ffff) return `\\${letter}${digits}`;
  // Half of a pair: the other half is the next escape, as JSON writes it.
  if (code < 0xd800 || code > 0xdbff) return String.fromCodePoint(code);
  const low = /^\\u(d[c-f][0-9a-f]{2})$/i.exec(yield* ahead(input, 6));
  if (low === null) return String.fromCharCode(code);
  input.at += 6;
  return String.fromCharCode(code, Number.parseInt(low[1]!, 16));
}

/** The next `length` characters, unread; fewer at the end, or when a white space ends them. */
function* ahead(input: Input, length: number): Step<string> {
  for (;;) {
    const text = input.text.slice(input.at, input.at + length);
    if (text.length === length || input.ended || (text !== "" && isSpace(text.charCodeAt(text.length - 1))))
      return text;
    yield;
  }
}
