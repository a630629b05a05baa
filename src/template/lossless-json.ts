/**
 * JSON whose numbers and key order survive: `1.0` stays a float, integers keep all their digits, integer-like keys keep their place.
 * `JSON.parse` loses all three, and templates print all three.
 */
import { PyFloat } from "./engine/values.ts";

export { PyFloat };

/** An integer is a number (a bigint beyond 2 ** 53), whatever has a fraction or an exponent is a PyFloat, an object is a Map. */
export type JsonValue = string | number | bigint | boolean | null | PyFloat | readonly JsonValue[] | JsonObject;
export type JsonObject = ReadonlyMap<string, JsonValue>;

/** Levels of arrays and objects. */
const MAX_DEPTH = 500;
const MAX_DIGITS = 4300;
const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const BLANK = /[ \t\n\r]*/y;

/** Reads a JSON text. Of equal keys the last value holds. Throws a SyntaxError that names the offset. */
export function parseLossless(text: string): JsonValue {
  const reader = { text, at: 0 };
  const value = read(reader, 0);
  blank(reader);
  return reader.at === text.length ? value : fail(reader);
}

interface Reader {
  readonly text: string;
  at: number;
}

function fail({ text, at }: Reader): never {
  throw new SyntaxError(
    at >= text.length ? "the JSON text ends too early" : `unexpected '${text[at]}' at offset ${at} of the JSON text`,
  );
}

function blank(reader: Reader): void {
  if (reader.text.charCodeAt(reader.at) > 32) return;
  BLANK.lastIndex = reader.at;
  BLANK.test(reader.text);
  reader.at = BLANK.lastIndex;
}

function read(reader: Reader, depth: number): JsonValue {
  blank(reader);
  if (depth > MAX_DEPTH) throw new SyntaxError(`the JSON text nests more than ${MAX_DEPTH} levels deep`);
  switch (reader.text[reader.at]) {
    case '"':
      return string(reader);
    case "{":
      return object(reader, depth);
    case "[":
      return array(reader, depth);
    case "t":
      return word(reader, "true", true);
    case "f":
      return word(reader, "false", false);
    case "n":
      return word(reader, "null", null);
  }
  return number(reader);
}

function word<T>(reader: Reader, name: string, value: T): T {
  if (!reader.text.startsWith(name, reader.at)) return fail(reader);
  reader.at += name.length;
  return value;
}

function number(reader: Reader): number | bigint | PyFloat {
  NUMBER.lastIndex = reader.at;
  const match = NUMBER.exec(reader.text);
  if (match === null) return fail(reader);
  reader.at += match[0].length;
  const value = Number(match[0]);
  if (match[1] !== undefined || match[2] !== undefined) return new PyFloat(value);
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value;
  if (match[0].length > MAX_DIGITS)
    throw new SyntaxError(`a number of the JSON text has more than ${MAX_DIGITS} digits`);
  return BigInt(match[0]);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them
const CONTROL = /[\0-\x1f]/;

function string(reader: Reader): string {
  const { text } = reader;
  const from = reader.at + 1;
  let end = text.indexOf('"', from);
  if (end < 0) {
    reader.at = text.length;
    return fail(reader);
  }
  const plain = text.slice(from, end);
  if (!plain.includes("\\")) {
    reader.at = end + 1;
    if (CONTROL.test(plain))
      throw new SyntaxError(`a control character in a string at offset ${from} of the JSON text`);
    return plain;
  }
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  if (end < 0) {
    reader.at = text.length;
    return fail(reader);
  }
  try {
    const value = JSON.parse(text.slice(from - 1, end + 1)) as string;
    reader.at = end + 1;
    return value;
  } catch {
    throw new SyntaxError(`a wrong escape in the string at offset ${from - 1} of the JSON text`);
  }
}

/** Whether an odd number of backslashes stands before. */
function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === "\\") slashes++;
  return slashes % 2 === 1;
}

function array(reader: Reader, depth: number): JsonValue[] {
  const items: JsonValue[] = [];
  reader.at++;
  blank(reader);
  if (reader.text[reader.at] === "]") {
    reader.at++;
    return items;
  }
  for (;;) {
    items.push(read(reader, depth + 1));
    if (!separator(reader, "]")) return items;
  }
}

/** After an item: true when another one follows. */
function separator(reader: Reader, close: string): boolean {
  blank(reader);
  const c = reader.text[reader.at];
  if (c !== "," && c !== close) fail(reader);
  reader.at++;
  return c === ",";
}

function object(reader: Reader, depth: number): JsonObject {
  const entries = new Map<string, JsonValue>();
  reader.at++;
  blank(reader);
  if (reader.text[reader.at] === "}") {
    reader.at++;
    return entries;
  }
  for (;;) {
    blank(reader);
    if (reader.text[reader.at] !== '"') fail(reader);
    const key = string(reader);
    blank(reader);
    if (reader.text[reader.at] !== ":") fail(reader);
    reader.at++;
    entries.set(key, read(reader, depth + 1));
    if (!separator(reader, "}")) return entries;
  }
}
