import { type Input, isSpace, peek, type Step } from "./input.ts";
import { CODE_START } from "./markers.ts";
import { isWord, wordAsJson, wordPrefix } from "./words.ts";

/** How a value ended: whole; at a character that cannot be part of it (unread); or with the text. */
export type Outcome = "done" | "broken" | "cut";

export const OPEN_OBJECT = 123;
export const OPEN_LIST = 91;
export const CLOSE_OBJECT = 125;
export const CLOSE_LIST = 93;
export const QUOTE = 34;
export const APOSTROPHE = 39;
export const COMMA = 44;
export const COLON = 58;
const BACKSLASH = 92;
/** Longer numbers are none. */
const MAX_WORD = 4096;

type Emit = (raw: string) => void;

/** What may come next in a value. */
type Expected = "value" | "value or end" | "key or end" | "key" | "colon" | "comma or end";

/** After a backslash: the letters of a JSON escape. */
const ESCAPE_LETTERS = '"\\/bfnrtu';

/**
 * Reads one JSON value and gives its bytes out as they come. Nothing but the JSON ends it. What breaks the grammar between
 * strings breaks the value, and is left unread. Inside strings, where models write line breaks and backslashes as they are, these
 * are escaped; Python's constants and numbers become JSON's. So a value that is "done" is JSON, and one that was JSON is
 * unchanged.
 */
export function* jsonValue(input: Input, emit: (raw: string) => void): Step<Outcome> {
  // What one piece of text gives goes out in one piece.
  let raw = "";
  const running = strictValue(
    input,
    (piece) => {
      raw += piece;
    },
    emit,
  );
  for (;;) {
    const step = running.next();
    if (raw !== "") {
      const piece = raw;
      raw = "";
      emit(piece);
    }
    if (step.done === true) return step.value;
    yield;
  }
}

/** @param direct takes what comes while the value waits inside a string, past `emit` */
function* strictValue(input: Input, emit: Emit, direct: Emit): Step<Outcome> {
  const stack: number[] = [];
  let expected: Expected = "value";
  for (;;) {
    const c = yield* peek(input);
    if (c < 0) return "cut";
    const isSpaceHere = isSpace(c);
    if (isSpaceHere && stack.length > 0) {
      emitSpace(input, emit);
      continue;
    }
    if (c === QUOTE && (expected === "key" || expected === "key or end" || expectsValue(expected))) {
      if ((yield* stringBody(input, emit, direct)) === "cut") return "cut";
      expected = expectsValue(expected) ? "comma or end" : "colon";
    } else if ((c === OPEN_OBJECT || c === OPEN_LIST) && expectsValue(expected)) {
      stack.push(c + 2);
      expected = c === OPEN_OBJECT ? "key or end" : "value or end";
      emit(input.text[input.at++]!);
    } else if (c === stack[stack.length - 1] && expected.endsWith("end")) {
      stack.pop();
      expected = "comma or end";
      emit(input.text[input.at++]!);
    } else if (c === COMMA && expected === "comma or end" && stack.length > 0) {
      expected = stack[stack.length - 1] === CLOSE_OBJECT ? "key" : "value";
      emit(input.text[input.at++]!);
    } else if (c === COLON && expected === "colon") {
      expected = "value";
      emit(input.text[input.at++]!);
    } else if (isWord(c) && expectsValue(expected)) {
      const outcome = yield* word(input, emit, stack.length === 0);
      if (outcome !== "done") return outcome;
      expected = "comma or end";
    } else return "broken";
    if (stack.length === 0 && expected === "comma or end") return "done";
  }
}

const expectsValue = (expected: Expected): boolean => expected === "value" || expected === "value or end";

function emitSpace(input: Input, emit: (raw: string) => void): void {
  const { text, at } = input;
  let end = at + 1;
  while (end < text.length && isSpace(text.charCodeAt(end))) end++;
  input.at = end;
  emit(text.slice(at, end));
}

/** Reads a string from its quote on. */
function* stringBody(input: Input, emit: Emit, direct: Emit): Step<"done" | "cut"> {
  let from = input.at;
  let i = from + 1;
  for (;;) {
    const { text } = input;
    let c = 0;
    while (i < text.length && (c = text.charCodeAt(i)) !== QUOTE && c !== BACKSLASH && c >= 32) i++;
    const isEnd = i < text.length && c === QUOTE;
    if (isEnd) i++;
    input.at = i;
    if (i > from) emit(text.slice(from, i));
    if (isEnd) return "done";
    if (i < text.length) {
      if (c === BACKSLASH) {
        if ((yield* stringEscape(input, emit)) === "cut") return "cut";
      } else {
        emit(escapeJson(text[i]!));
        input.at++;
      }
    } else {
      if (input.ended) return "cut";
      input.waitIn(direct, undefined);
      yield;
    }
    from = input.at;
    i = from;
  }
}

/** Reads an escape from its backslash on; what is none is a backslash. */
function* stringEscape(input: Input, emit: (raw: string) => void): Step<"done" | "cut"> {
  input.at++;
  const c = yield* peek(input);
  if (c < 0) {
    emit("\\");
    return "cut";
  }
  const letter = String.fromCharCode(c);
  if (letter === "'") {
    input.at++;
    emit("'");
  } else if (!ESCAPE_LETTERS.includes(letter)) emit("\\\\");
  else {
    input.at++;
    if (letter !== "u") emit(`\\${letter}`);
    else return yield* unicodeEscape(input, emit);
  }
  return "done";
}

/** Reads an escape behind its `u`. Two that make one character go out as one. */
function* unicodeEscape(input: Input, emit: (raw: string) => void): Step<"done" | "cut"> {
  let held = "";
  for (;;) {
    let digits = "";
    while (digits.length < 4) {
      const c = yield* peek(input);
      if (c < 0) {
        emit(`${held}\\u${digits}`);
        return "cut";
      }
      if (!isHexDigit(c)) {
        emit(`${held}\\\\u${digits}`);
        return "done";
      }
      digits += input.text[input.at++];
    }
    const isPair = held !== "" && /^d[c-f]/i.test(digits);
    if (held !== "" && !isPair) emit(held);
    held = `${isPair ? held : ""}\\u${digits}`;
    if (isPair || !/^d[89ab]/i.test(digits) || (yield* ahead(input, 2)) !== "\\u") break;
    input.at += 2;
  }
  emit(held);
  return "done";
}

/** The next `length` characters, unread; fewer where they don't begin with a backslash, or at the end. */
function* ahead(input: Input, length: number): Step<string> {
  for (;;) {
    const text = input.text.slice(input.at, input.at + length);
    const mayBe = text === "" || text.charCodeAt(0) === BACKSLASH;
    if (text.length === length || !mayBe || input.ended) return text;
    yield;
  }
}

const isHexDigit = (c: number): boolean => (c >= 48 && c <= 57) || (c >= 97 && c <= 102) || (c >= 65 && c <= 70);

/** Reads a number or a constant; `isLast`: it may stand at the end of the text. What can be JSON goes out as it comes. */
function* word(input: Input, emit: (raw: string) => void, isLast: boolean): Step<Outcome> {
  let text = "";
  let given = 0;
  for (;;) {
    if (input.at >= input.text.length && wordPrefix(text) === text.length) {
      emit(text.slice(given));
      given = text.length;
    }
    const c = yield* peek(input);
    if (c < 0 && !isLast) {
      emit(text.slice(given));
      return "cut";
    }
    if (c < 0 || !isWord(c)) break;
    if (text.length >= MAX_WORD) return "broken";
    text += input.text[input.at++];
  }
  const json = wordAsJson(text);
  const prefix = wordPrefix(text);
  if (json?.startsWith(text.slice(0, prefix)) === true) {
    emit(json.slice(given));
    return "done";
  }
  emit(text.slice(given, prefix));
  input.unread(text.slice(prefix));
  return "broken";
}

/** Reads one JSON value whole; undefined when it is broken or cut. */
export function* heldJson(input: Input): Step<string | undefined> {
  let raw = "";
  const outcome = yield* jsonValue(input, (piece) => {
    raw += piece;
  });
  return outcome === "done" ? raw : undefined;
}

/** What a JSON string says; a string that is not strict JSON is taken as it stands. */
export function unquote(raw: string): string {
  const value = parseJson(raw);
  return typeof value === "string" ? value : raw.slice(1, -1);
}

/** The value, or undefined where the text is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Text as the inside of a JSON string. */
export const escapeJson = (text: string): string => JSON.stringify(text).slice(1, -1);

/** Reads a JSON string, whose quote is next, and gives out what it says. */
export function* decodedString(input: Input, emit: (text: string) => void): Step<Outcome> {
  input.at++;
  for (;;) {
    const { text } = input;
    let i = input.at;
    while (i < text.length && text.charCodeAt(i) !== QUOTE && text.charCodeAt(i) !== BACKSLASH) i++;
    if (i > input.at) emit(text.slice(input.at, i));
    input.at = i;
    const c = yield* peek(input);
    if (c < 0) return "cut";
    if (c === QUOTE) {
      input.at++;
      return "done";
    }
    if (c !== BACKSLASH) continue;
    const written = yield* readEscape(input);
    if (written === undefined) return "cut";
    emit(unquote(`"${written}"`));
  }
}

/** Reads an escape whole, and with the first half of a surrogate pair the second. */
function* readEscape(input: Input): Step<string | undefined> {
  let written = "";
  for (let length = 2; written.length < length; ) {
    const c = yield* peek(input);
    if (c < 0) return undefined;
    if (c === CODE_START) return written;
    written += input.text[input.at++];
    if (written.length === 2 && written[1] === "u") length = 6;
    if (written.length === 6 && /^\\ud[89ab]/i.test(written)) {
      if ((yield* peek(input)) === BACKSLASH) length = 12;
    }
    if (written.length === 8 && written[7] !== "u") length = 8;
  }
  return written;
}
