import { Input, peek, type Step, skipSpace } from "./input.ts";
import {
  APOSTROPHE,
  CLOSE_LIST,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  decodedString,
  jsonValue,
  OPEN_LIST,
  OPEN_OBJECT,
  type Outcome,
  QUOTE,
  unquote,
} from "./json.ts";
import type { Parsing } from "./parsing.ts";
import { pythonString, pythonValue } from "./python.ts";

/** How a family writes a call as an object. */
export interface CallShape {
  readonly names?: readonly string[];
  readonly args?: readonly string[];
  /** Without a marker before it: an object is a call only with arguments or a declared name, and without foreign keys. */
  readonly bare?: boolean;
  /** The literal is Python's. */
  readonly python?: boolean;
}

const LETTER_N = 110;
const CAPITAL_N = 78;
const NAMES = ["name", "function", "tool_name"];
const ARGUMENTS = ["arguments", "parameters", "args"];
const IDS = ["id", "tool_call_id", "call_id"];
/** Keys that do not show that an object is no call. */
const BESIDES = ["type", "index", ...IDS];

/**
 * What stood there. `call`: one or more whole calls. `broken`: a call that stays unfinished; what follows is unread. `cut`: the
 * text ended. The others are no calls: `value` is a whole value, `open` a value read up to what shows it is no call, `syntax`
 * no JSON at all.
 */
export type CallOutcome = "call" | "broken" | "cut" | "value" | "open" | "syntax";

/** Reads a call, or a list of calls, whose bracket is next. `stack`: closers of what stays open. */
export function* callList(p: Parsing, shape: CallShape, stack: number[]): Step<CallOutcome> {
  const { input } = p;
  if ((yield* peek(input)) !== OPEN_LIST) return yield* callObject(p, shape, stack);
  input.at++;
  stack.push(CLOSE_LIST);
  let calls = 0;
  for (;;) {
    const c = yield* skipSpace(input);
    if (c < 0) return "cut";
    if (c === OPEN_OBJECT) {
      const outcome = yield* callObject(p, shape, stack);
      if (outcome !== "call") return outcome === "value" ? "open" : outcome;
      calls++;
      input.record();
    } else if (c === CLOSE_LIST) {
      input.at++;
      stack.pop();
      if (calls === 0) return "value";
      input.forget();
      return "call";
    } else if (c === COMMA && calls > 0) input.at++;
    else return "syntax";
  }
}

/** What is known of a call while its object is read. */
interface Draft {
  name: string | undefined;
  id: string | undefined;
  /** Arguments that came before the name. */
  held: string | undefined;
  started: boolean;
  given: boolean;
  /** A key that no call has was read. */
  foreign: boolean;
}

/**
 * Reads one call as an object, whose brace is next. It begins with its arguments, or at its end where it has none: an object
 * that carries something else in their place is no call.
 */
export function* callObject(p: Parsing, shape: CallShape, stack: number[]): Step<CallOutcome> {
  const { input } = p;
  const depth = stack.length;
  const draft: Draft = {
    name: undefined,
    id: undefined,
    held: undefined,
    started: false,
    given: false,
    foreign: false,
  };
  input.at++;
  stack.push(CLOSE_OBJECT);
  while (stack.length > depth) {
    const c = yield* skipSpace(input);
    // What follows the arguments is text if it breaks the call.
    if (draft.started && !input.recording) input.record();
    if (c < 0) return cut(p, shape, draft);
    if (c === CLOSE_OBJECT) {
      input.at++;
      stack.pop();
    } else if (c === COMMA) input.at++;
    else if (c === QUOTE || (c === APOSTROPHE && shape.python === true)) {
      const outcome = yield* member(p, shape, draft, stack);
      if (draft.started && outcome === undefined) input.forget();
      if (outcome !== undefined) return outcome === "cut" ? cut(p, shape, draft) : broken(p, draft, outcome);
    } else return broken(p, draft, "syntax");
  }
  if (draft.name === undefined) return "value";
  if (!draft.started) {
    if (draft.foreign || (shape.bare === true && !p.tools.has(draft.name))) return "value";
    begin(p, draft);
  }
  if (!draft.given) p.out.arguments("{}");
  input.forget();
  p.out.end();
  return "call";
}

function begin(p: Parsing, draft: Draft): void {
  p.start(draft.name!, draft.id);
  draft.started = true;
  if (draft.held === undefined) return;
  p.out.arguments(draft.held);
  draft.given = true;
}

function cut(p: Parsing, shape: CallShape, draft: Draft): CallOutcome {
  if (!draft.started && draft.name !== undefined && !draft.foreign && shape.bare !== true) begin(p, draft);
  if (draft.started) p.leave();
  return "cut";
}

function broken(p: Parsing, draft: Draft, outcome: CallOutcome): CallOutcome {
  if (!draft.started) return outcome;
  p.leave();
  return "broken";
}

const OUTCOMES = { done: undefined, broken: "syntax", cut: "cut" } as const;

/** Reads `"key": value`; undefined when all is well. */
function* member(p: Parsing, shape: CallShape, draft: Draft, stack: number[]): Step<CallOutcome | undefined> {
  const { input } = p;
  const key = yield* quoted(input);
  if (key === undefined) return input.ended ? "cut" : "syntax";
  let c = yield* skipSpace(input);
  if (c < 0) return "cut";
  if (c !== COLON) return "syntax";
  input.at++;
  c = yield* skipSpace(input);
  if (c < 0) return "cut";
  const isQuote = c === QUOTE || (c === APOSTROPHE && shape.python === true);
  if (isQuote && draft.name === undefined && (shape.names ?? NAMES).includes(key)) {
    draft.name = yield* quoted(input);
    if (draft.name === undefined) return "cut";
    // A call without a name is none.
    if (draft.name === "") draft.name = undefined;
    else if (draft.held !== undefined) begin(p, draft);
    return undefined;
  }
  if (key === "function" && c === OPEN_OBJECT && draft.name === undefined) {
    input.at++;
    stack.push(CLOSE_OBJECT);
    return undefined;
  }
  if ((shape.args ?? ARGUMENTS).includes(key)) {
    // Which of two are meant is not to be guessed.
    if (draft.given || draft.held !== undefined) return "open";
    return yield* argumentsOf(p, shape, draft);
  }
  if (isQuote && !draft.started && IDS.includes(key)) {
    draft.id = yield* quoted(input);
    return draft.id === undefined ? "cut" : undefined;
  }
  if (!draft.started && !BESIDES.includes(key)) {
    if (shape.bare === true) return "open";
    draft.foreign = true;
  }
  return OUTCOMES[yield* shape.python === true ? pythonValue(input, ignore) : jsonValue(input, ignore)];
}

const ignore = (): void => {};

/** Reads a string of either quote; undefined when the text ends in it. */
function* quoted(input: Input): Step<string | undefined> {
  if ((yield* peek(input)) === APOSTROPHE) {
    let text = "";
    const outcome = yield* pythonString(input, (piece) => {
      text += piece;
    });
    return outcome === "done" ? text : undefined;
  }
  let raw = "";
  const outcome = yield* jsonValue(input, (piece) => {
    raw += piece;
  });
  return outcome === "done" ? unquote(raw) : undefined;
}

/**
 * Reads the arguments: an object as it stands; one that was written into a string as what the string says; null and the empty
 * string as `{}`. Any other value can't be a call's arguments: the object is none.
 */
function* argumentsOf(p: Parsing, shape: CallShape, draft: Draft): Step<CallOutcome | undefined> {
  const { input } = p;
  const kind = yield* argumentsKind(input, shape);
  if (kind === "cut") return "cut";
  if (kind === "other") return "open";
  let emit = p.arguments;
  if (draft.name !== undefined) {
    begin(p, draft);
    draft.given = true;
  } else {
    draft.held = "";
    emit = (piece) => {
      draft.held += piece;
    };
  }
  if (kind === "none") {
    emit("{}");
    return undefined;
  }
  if (kind === "written") return OUTCOMES[yield* writtenArguments(input, emit)];
  return OUTCOMES[yield* shape.python === true ? pythonValue(input, emit) : jsonValue(input, emit)];
}

/** What the value that is next is, as arguments; where it is `none`, it is read. */
function* argumentsKind(input: Input, shape: CallShape): Step<"object" | "written" | "none" | "other" | "cut"> {
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
  const outcome = yield* shape.python === true ? pythonValue(input, keep) : jsonValue(input, keep);
  if (outcome === "cut") return "cut";
  return outcome === "done" && word === "null" ? "none" : "other";
}

/** Reads arguments that were written into a string. */
function* writtenArguments(input: Input, emit: (raw: string) => void): Step<Outcome> {
  const inner = new Input();
  const value = jsonValue(inner, emit);
  let outcome: Outcome | undefined;
  const end = yield* decodedString(input, (text) => {
    inner.feed(text);
    const step = outcome === undefined ? value.next() : undefined;
    if (step?.done === true) outcome = step.value;
    if (outcome === undefined) return;
    // What does not belong to the value makes the call none that is complete, but is not lost.
    const rest = inner.text.slice(inner.at);
    inner.at = inner.text.length;
    if (rest.trim() === "") return;
    outcome = "broken";
    emit(rest);
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
