/** Reading JSON text as UTF-8 bytes, for values that are too many to become JavaScript strings. */
import { TokenizerError } from "../tokenizer.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/** A place in JSON text. Functions move it on; they throw `TokenizerError` where the text is not what they read. */
export interface Cursor {
  readonly bytes: Uint8Array;
  at: number;
}

export function broken(cursor: Cursor): TokenizerError {
  return new TokenizerError(`tokenizer.json is not JSON: unexpected text at byte ${cursor.at}`);
}

/** The next byte that is no white space. */
export function peek(cursor: Cursor): number {
  const { bytes } = cursor;
  let b = bytes[cursor.at];
  while (b === 0x20 || b === 0x0a || b === 0x0d || b === 0x09) b = bytes[++cursor.at];
  if (b === undefined) throw broken(cursor);
  return b;
}

export function expectByte(cursor: Cursor, byte: number): void {
  if (peek(cursor) !== byte) throw broken(cursor);
  cursor.at++;
}

/** After a value in a list or object: true if another one follows, false if `close` ended it. */
export function another(cursor: Cursor, close: number): boolean {
  const b = peek(cursor);
  if (b !== COMMA && b !== close) throw broken(cursor);
  cursor.at++;
  return b === COMMA;
}

/** Opens a list or object; false if it is empty (and then closed). */
export function enter(cursor: Cursor, open: number, close: number): boolean {
  expectByte(cursor, open);
  if (peek(cursor) !== close) return true;
  cursor.at++;
  return false;
}

/** Writes a string's characters as UTF-8 to `out` from `to` on (there must be room); returns the end. */
export function readString(cursor: Cursor, out: Uint8Array, to: number): number {
  expectByte(cursor, QUOTE);
  const { bytes } = cursor;
  let at = cursor.at;
  let end = to;
  for (;;) {
    const b = bytes[at++];
    if (b === QUOTE) break;
    if (b === undefined || b < 0x20) throw broken(cursor);
    if (b !== BACKSLASH) {
      out[end++] = b;
      continue;
    }
    cursor.at = at;
    end = readEscape(cursor, out, end);
    at = cursor.at;
  }
  cursor.at = at;
  return end;
}

const ESCAPES: Readonly<Record<number, number>> = {
  [QUOTE]: QUOTE,
  [BACKSLASH]: BACKSLASH,
  47: 0x2f,
  98: 8,
  102: 12,
  110: 10,
  114: 13,
  116: 9,
};

function readEscape(cursor: Cursor, out: Uint8Array, to: number): number {
  const kind = cursor.bytes[cursor.at++];
  if (kind !== 0x75) {
    const byte = kind === undefined ? undefined : ESCAPES[kind];
    if (byte === undefined) throw broken(cursor);
    out[to] = byte;
    return to + 1;
  }
  let code = readHex(cursor);
  if (
    code >= 0xd800 &&
    code < 0xdc00 &&
    cursor.bytes[cursor.at] === BACKSLASH &&
    cursor.bytes[cursor.at + 1] === 0x75
  ) {
    cursor.at += 2;
    const low = readHex(cursor);
    if (low < 0xdc00 || low > 0xdfff) throw broken(cursor);
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  if (code >= 0xd800 && code < 0xe000) throw broken(cursor);
  return writeCodePoint(code, out, to);
}

function readHex(cursor: Cursor): number {
  const digits = String.fromCharCode(...cursor.bytes.subarray(cursor.at, cursor.at + 4));
  if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw broken(cursor);
  cursor.at += 4;
  return Number.parseInt(digits, 16);
}

/** Writes a code point as UTF-8; returns the end. */
function writeCodePoint(code: number, out: Uint8Array, to: number): number {
  if (code < 0x80) {
    out[to] = code;
    return to + 1;
  }
  const tails = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  out[to] = ((0xf0 << (3 - tails)) & 0xff) | (code >> (6 * tails));
  for (let i = 1; i <= tails; i++) out[to + i] = 0x80 | ((code >> (6 * (tails - i))) & 63);
  return to + tails + 1;
}

/** A whole number that is not negative. */
export function readCount(cursor: Cursor): number {
  peek(cursor);
  const { bytes } = cursor;
  const from = cursor.at;
  let value = 0;
  for (let b = bytes[from]; b !== undefined && b >= 0x30 && b <= 0x39; b = bytes[++cursor.at])
    value = value * 10 + (b - 0x30);
  if (cursor.at === from || cursor.at - from > 10) throw broken(cursor);
  return value;
}

/** Passes over one value of any kind. Only its nesting is looked at. */
export function skipValue(cursor: Cursor): void {
  const { bytes } = cursor;
  let depth = 0;
  do {
    const b = peek(cursor);
    if (b === QUOTE) skipString(cursor);
    else if (b === 0x7b || b === 0x5b) {
      depth++;
      cursor.at++;
    } else if (b === 0x7d || b === 0x5d) {
      depth--;
      cursor.at++;
    } else if (b === COMMA || b === 0x3a) {
      if (depth === 0) throw broken(cursor);
      cursor.at++;
    } else {
      while (isPlain(bytes[cursor.at])) cursor.at++;
    }
  } while (depth > 0);
}

/** Part of a number or of true, false, null. */
const isPlain = (b: number | undefined): boolean =>
  b !== undefined &&
  b > 0x20 &&
  b !== COMMA &&
  b !== 0x3a &&
  b !== 0x5b &&
  b !== 0x5d &&
  b !== 0x7b &&
  b !== 0x7d &&
  b !== QUOTE;

function skipString(cursor: Cursor): void {
  const { bytes } = cursor;
  let at = cursor.at + 1;
  for (;;) {
    const b = bytes[at++];
    if (b === QUOTE) break;
    if (b === undefined) throw broken(cursor);
    if (b === BACKSLASH) at++;
  }
  cursor.at = at;
}
