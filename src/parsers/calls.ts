import { argumentsKind, writtenArguments } from "./call-arguments.ts";
import { Input, look, peek, type Step, skipSpace } from "./input.ts";
import {
  APOSTROPHE,
  CLOSE_LIST,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  heldJson,
  jsonValue,
  OPEN_LIST,
  OPEN_OBJECT,
  QUOTE,
  unquote,
} from "./json.ts";
import type { MarkerSet } from "./markers.ts";
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
  /** Markers behind the call: no key or name holds one. */
  readonly close?: readonly string[];
  /** The ids that the model writes are those of its format. Any other model's are its own affair. */
  readonly ids?: boolean;
}

const BACKSLASH = 92;
const NAMES = ["name", "function", "tool_name"];
const ARGUMENTS = ["arguments", "parameters", "args"];
const IDS = ["id", "tool_call_id", "call_id"];
/** A key or a name that is longer is none. */
const MAX_KEY = 256;
/** Half a key, or half a value of an id or a kind, that an answer may end in. */
const HALF = /^[\w.:$-]{0,64}$/;
/** The same with what stands around it. */
const HALF_MEMBER = /^[\s,]*(?:"[\w.$-]{0,64}(?:"\s*(?::\s*(?:"?[\w.:$-]{0,64}"?)?)?)?)?[\s,}\]]*$/;
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
  /** What was read of a key or a value that is not whole. */
  half: string;
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
    half: "",
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
  const isHalf = draft.started || HALF.test(draft.half);
  if (isHalf && !draft.started && draft.name !== undefined && !draft.foreign && shape.bare !== true) begin(p, draft);
  if (draft.started) p.leave(HALF_MEMBER);
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
  const ends = p.set(...(shape.close ?? []));
  const key = yield* quoted(input, draft, ends);
  if (key === undefined) return input.isAtEnd ? "cut" : "syntax";
  let c = yield* skipSpace(input);
  if (c < 0) return "cut";
  if (c !== COLON) return "syntax";
  input.at++;
  c = yield* skipSpace(input);
  if (c < 0) return "cut";
  const isQuote = c === QUOTE || (c === APOSTROPHE && shape.python === true);
  if (isQuote && draft.name === undefined && (shape.names ?? NAMES).includes(key)) {
    draft.name = yield* quoted(input, draft, ends);
    if (draft.name === undefined) return input.isAtEnd ? "cut" : "syntax";
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
    const id = yield* quoted(input, draft, ends);
    if (id === undefined) return input.isAtEnd ? "cut" : "syntax";
    if (shape.ids === true) draft.id = id;
    return undefined;
  }
  if (!draft.started && !BESIDES.includes(key)) {
    if (shape.bare === true) return "open";
    draft.foreign = true;
  }
  const keep = (piece: string): void => {
    if (draft.half.length < MAX_KEY) draft.half += piece;
  };
  const outcome = yield* shape.python === true ? pythonValue(input, keep) : jsonValue(input, keep);
  if (outcome === "done") draft.half = "";
  else draft.half = draft.half.replace(/^"/, "");
  return OUTCOMES[outcome];
}

/** Reads a string of either quote; undefined when the text ends in it, and where it is none: too long, or one of `ends` in it. */
function* quoted(input: Input, draft: Draft, ends: MarkerSet): Step<string | undefined> {
  const quote = yield* peek(input);
  input.at++;
  for (draft.half = ""; draft.half.length <= MAX_KEY; ) {
    let c = yield* peek(input);
    if (c === quote) {
      input.at++;
      const { half } = draft;
      draft.half = "";
      return said(half, quote);
    }
    if (c < 0 || (!ends.isFree(input.text[input.at]!) && (yield* look(input, ends)) >= 0)) return undefined;
    if (c === BACKSLASH) {
      draft.half += input.text[input.at++];
      c = yield* peek(input);
      if (c < 0) return undefined;
    }
    draft.half += input.text[input.at++];
  }
  return undefined;
}

/** What a string says whose inside is given. */
function said(inside: string, quote: number): string {
  const inner = new Input();
  const around = String.fromCharCode(quote);
  inner.feed(around + inside + around);
  inner.ended = true;
  let text = "";
  if (quote === QUOTE) return unquote(heldJson(inner).next().value ?? `"${inside}"`);
  pythonString(inner, (piece) => {
    text += piece;
  }).next();
  return text;
}

/**
 * Reads the arguments: an object as it stands; one that was written into a string as what the string says; null and the empty
 * string as `{}`. Any other value can't be a call's arguments: the object is none.
 */
function* argumentsOf(p: Parsing, shape: CallShape, draft: Draft): Step<CallOutcome | undefined> {
  const { input } = p;
  const literal = shape.python === true ? pythonValue : jsonValue;
  const kind = yield* argumentsKind(input, literal);
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
  return OUTCOMES[yield* kind === "written" ? writtenArguments(input, emit) : literal(input, emit)];
}
