/**
 * JSON whose numbers and key order survive: `1.0` stays a float, integers keep all their digits, integer-like keys keep their place.
 * `JSON.parse` loses all three, and templates print all three.
 */
import { PIECE_TEXT, type Steps } from "../steps.ts";
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
  const reading = new Reading(text);
  reading.goOn(Number.POSITIVE_INFINITY);
  return reading.end();
}

/** The same in steps. */
export function* losslessSteps(text: string): Steps<JsonValue> {
  const reading = new Reading(text);
  for (let until = PIECE_TEXT; !reading.goOn(until); until = reading.at + PIECE_TEXT) yield;
  return reading.end();
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

/** After an item: true when another one follows. */
function separator(reader: Reader, close: string): boolean {
  blank(reader);
  const c = reader.text[reader.at];
  if (c !== "," && c !== close) fail(reader);
  reader.at++;
  return c === ",";
}

/** Reads up to the value of an entry. */
function entryKey(reader: Reader): string {
  blank(reader);
  if (reader.text[reader.at] !== '"') fail(reader);
  const key = string(reader);
  blank(reader);
  if (reader.text[reader.at] !== ":") fail(reader);
  reader.at++;
  return key;
}

/** Behind an opening bracket: whether it closes at once. */
function closesAtOnce(reader: Reader, close: string): boolean {
  reader.at++;
  blank(reader);
  if (reader.text[reader.at] !== close) return false;
  reader.at++;
  return true;
}

/** An array or object whose end has not been read. */
type Open =
  | { readonly list: JsonValue[]; readonly entries?: undefined }
  | { readonly list?: undefined; readonly entries: Map<string, JsonValue>; key: string };

class Reading implements Reader {
  at = 0;
  private readonly open: Open[] = [];
  private value: JsonValue = null;

  constructor(readonly text: string) {}

  /** Reads on, up to this offset or a little behind. True: the value is complete. */
  goOn(until: number): boolean {
    const { open } = this;
    for (;;) {
      blank(this);
      if (open.length > MAX_DEPTH) throw new SyntaxError(`the JSON text nests more than ${MAX_DEPTH} levels deep`);
      let value = this.scalarOrEmpty();
      if (value === undefined) continue; // a bracket was opened
      for (;;) {
        const around = open.at(-1);
        if (around === undefined) {
          this.value = value;
          return true;
        }
        if (around.list !== undefined) {
          around.list.push(value);
          if (separator(this, "]")) break;
          value = around.list;
        } else {
          around.entries.set(around.key, value);
          if (separator(this, "}")) {
            around.key = entryKey(this);
            break;
          }
          value = around.entries;
        }
        open.pop();
      }
      if (this.at >= until) return false;
    }
  }

  /** The value, if nothing follows it. */
  end(): JsonValue {
    blank(this);
    return this.at === this.text.length ? this.value : fail(this);
  }

  /** The value that begins here; undefined: it is an array or object with something in it, which is open now. */
  private scalarOrEmpty(): JsonValue | undefined {
    switch (this.text[this.at]) {
      case '"':
        return string(this);
      case "{": {
        const entries = new Map<string, JsonValue>();
        if (closesAtOnce(this, "}")) return entries;
        this.open.push({ entries, key: entryKey(this) });
        return undefined;
      }
      case "[": {
        const list: JsonValue[] = [];
        if (closesAtOnce(this, "]")) return list;
        this.open.push({ list });
        return undefined;
      }
      case "t":
        return word(this, "true", true);
      case "f":
        return word(this, "false", false);
      case "n":
        return word(this, "null", null);
    }
    return number(this);
  }
}
