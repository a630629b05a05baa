import { type Input, isSpace, peek, type Step } from "./input.ts";
import { CODE_START } from "./markers.ts";

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

/** Characters of numbers and words: letters, digits, `+ - . _`. */
function isWord(c: number): boolean {
  return (
    (c >= 97 && c <= 122) ||
    (c >= 48 && c <= 57) ||
    (c >= 65 && c <= 90) ||
    c === 45 ||
    c === 46 ||
    c === 43 ||
    c === 95
  );
}

/**
 * Reads one JSON value and gives its bytes out as they come. Nothing but the JSON ends it. It is strict about brackets, strings
 * and stray characters, not about commas and words. `stack`: the closers of what is open around the place already; the value
 * then ends where the outermost of them does.
 */
export function* jsonValue(input: Input, emit: (raw: string) => void, stack: number[] = []): Step<Outcome> {
  let inString = false;
  let escaped = false;
  let word = false;
  for (;;) {
    const { text } = input;
    let i = input.at;
    let outcome: Outcome | undefined;
    while (i < text.length && outcome === undefined) {
      const c = text.charCodeAt(i);
      if (inString) {
        if (escaped) escaped = false;
        else if (c === BACKSLASH) escaped = true;
        else if (c === QUOTE) {
          inString = false;
          if (stack.length === 0) outcome = "done";
        }
        i++;
      } else if (word && stack.length === 0 && !isWord(c)) {
        outcome = "done";
      } else if (c === QUOTE) {
        inString = true;
        i++;
      } else if (c === OPEN_OBJECT || c === OPEN_LIST) {
        stack.push(c + 2);
        i++;
      } else if (c === CLOSE_OBJECT || c === CLOSE_LIST) {
        if (stack[stack.length - 1] !== c) outcome = "broken";
        else {
          stack.pop();
          i++;
          if (stack.length === 0) outcome = "done";
        }
      } else if (isWord(c)) {
        word = true;
        i++;
      } else if (stack.length > 0 && (isSpace(c) || c === COMMA || c === COLON)) i++;
      else outcome = "broken";
    }
    if (i > input.at) {
      const raw = text.slice(input.at, i);
      input.at = i;
      emit(raw);
    }
    if (outcome !== undefined) return outcome;
    if (input.ended) return word && stack.length === 0 ? "done" : "cut";
    yield;
  }
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
