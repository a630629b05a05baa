import { type Input, isSpace, type Step } from "./input.ts";
import { CLOSE_LIST, CLOSE_OBJECT, COLON, COMMA, OPEN_LIST, OPEN_OBJECT, QUOTE } from "./json.ts";
import { isWord } from "./words.ts";

const BACKSLASH = 92;

/**
 * Reads the rest of a JSON value that is only text, byte for byte, to its end or to what cannot be JSON. `stack`: the closers of
 * what is open around the place.
 */
export function* jsonText(input: Input, emit: (raw: string) => void, stack: number[]): Step<void> {
  let inString = false;
  let escaped = false;
  for (;;) {
    const { text } = input;
    let i = input.at;
    let isDone = stack.length === 0;
    while (i < text.length && !isDone) {
      const c = text.charCodeAt(i);
      if (inString) {
        if (escaped) escaped = false;
        else if (c === BACKSLASH) escaped = true;
        else if (c === QUOTE) inString = false;
      } else if (c === QUOTE) inString = true;
      else if (c === OPEN_OBJECT || c === OPEN_LIST) stack.push(c + 2);
      else if (c === CLOSE_OBJECT || c === CLOSE_LIST) {
        isDone = stack.pop() !== c || stack.length === 0;
      } else if (!isWord(c) && !isSpace(c) && c !== COMMA && c !== COLON) {
        break;
      }
      i++;
    }
    const isBroken = i < text.length && !isDone;
    if (i > input.at) emit(text.slice(input.at, i));
    input.at = i;
    if (isDone || isBroken || input.ended) return;
    yield;
  }
}
