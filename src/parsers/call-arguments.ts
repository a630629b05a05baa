import { Input, peek, type Step } from "./input.ts";
import { decodedString, jsonValue, OPEN_OBJECT, type Outcome, QUOTE } from "./json.ts";

const LETTER_N = 110;
const CAPITAL_N = 78;

/** An object; one that was written into a string; null or an empty string, for none; any other value, which can be none. */
export type ArgumentsKind = "object" | "written" | "none" | "other" | "cut";

/** What the value that is next is, as arguments; where it is `none`, it is read. `literal`: reads a value. */
export function* argumentsKind(
  input: Input,
  literal: (input: Input, emit: (raw: string) => void) => Step<Outcome> = jsonValue,
): Step<ArgumentsKind> {
  const c = yield* peek(input);
  if (c === OPEN_OBJECT) return "object";
  if (c === QUOTE) {
    const second = yield* peekSecond(input);
    if (second < 0) return "cut";
    if (second === OPEN_OBJECT) return "written";
    if (second !== QUOTE) return "other";
    input.at += 2;
    return "none";
  }
  if (c !== LETTER_N && c !== CAPITAL_N) return "other";
  let word = "";
  const keep = (piece: string): void => {
    word += piece;
  };
  const outcome = yield* literal(input, keep);
  if (outcome === "cut") return "cut";
  return outcome === "done" && word === "null" ? "none" : "other";
}

/** Half of a character that stands by itself. */
const HALF_CHARACTER = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16)}`;

/** Reads arguments that were written into a string. */
export function* writtenArguments(input: Input, emit: (raw: string) => void): Step<Outcome> {
  const inner = new Input();
  const value = jsonValue(inner, emit);
  let outcome: Outcome | undefined;
  let space = "";
  const end = yield* decodedString(input, (text) => {
    // The other half may be an escape inside: together they are read as one.
    inner.feed(text.replace(HALF_CHARACTER, escaped));
    const step = outcome === undefined ? value.next() : undefined;
    if (step?.done === true) outcome = step.value;
    if (outcome === undefined) return;
    // What does not belong to the value makes the call none that is complete, but is not lost.
    const rest = space + inner.text.slice(inner.at);
    inner.at = inner.text.length;
    const body = rest.trimEnd();
    space = rest.slice(body.length);
    if (body === "") return;
    outcome = "broken";
    emit(body);
  });
  return end === "done" ? (outcome ?? "broken") : end;
}

function* peekSecond(input: Input): Step<number> {
  while (input.at + 1 >= input.text.length) {
    if (input.ended) return -1;
    yield;
  }
  return input.text.charCodeAt(input.at + 1);
}
