import { readWhile, type Step, skipSpace, until } from "../input.ts";
import { CLOSE_LIST, COMMA, OPEN_LIST, OPEN_OBJECT } from "../json.ts";
import type { MarkerSet } from "../markers.ts";
import type { Parsing } from "../parsing.ts";
import { isNamePart, pythonValue } from "../python.ts";
import { calls } from "./json-blocks.ts";

/** Calls as Python writes them. */
export interface PythonicFamily {
  readonly open: readonly string[];
  readonly close: readonly string[];
  /** A list may stand without the opener: at the begin of the answer with any names, later with declared ones. */
  readonly bare?: boolean;
  /** One call per line instead of a list. */
  readonly lines?: boolean;
}

const OPEN_CALL = 40;
const CLOSE_CALL = 41;
const EQUALS = 61;
const MAX_NAME = 128;
const isDigit = (c: number): boolean => c >= 48 && c <= 57;

/** The program of such a family. */
export function pythonic(family: PythonicFamily): (p: Parsing) => Step<void> {
  const { open, close, bare = false, lines = false } = family;
  return function* run(p) {
    const { input } = p;
    const openers = [...open, ...(bare ? ["["] : [])];
    const outside = p.set(...openers);
    const behindBroken = p.set(...openers, ...close);
    const closers = p.set(...close);
    const reader = new CallReader(p, lines);
    let closerIsDue = false;
    if (bare) yield* objectsAtStart(p);
    for (;;) {
      const set: MarkerSet = closerIsDue ? behindBroken : outside;
      const hit = yield* until(input, set, p.text);
      if (hit < 0) return;
      if (hit >= openers.length) {
        closerIsDue = false;
        continue;
      }
      const isBare = hit >= open.length;
      input.record(set.markers[hit]!);
      if (!isBare) {
        const c = yield* skipSpace(input);
        if (c === OPEN_OBJECT) {
          if (yield* calls(p, {})) closerIsDue = !(yield* p.skipMarkers(closers));
          continue;
        }
        if (!lines) {
          if (c !== OPEN_LIST) {
            p.giveBack();
            continue;
          }
          input.at++;
        }
      }
      const found = yield* reader.read(isBare && !p.out.atStart);
      if (found) closerIsDue = !(yield* p.skipMarkers(closers)) && !isBare;
    }
  };
}

/** Models that should write Python sometimes write JSON. */
function* objectsAtStart(p: Parsing): Step<void> {
  const { input } = p;
  input.record();
  let c = yield* skipSpace(input);
  if (c === OPEN_LIST) {
    input.at++;
    c = yield* skipSpace(input);
    input.rewind(0);
    input.record();
    yield* skipSpace(input);
  }
  if (c === OPEN_OBJECT) yield* calls(p, { bare: true });
  else input.rewind(0);
}

class CallReader {
  constructor(
    private readonly p: Parsing,
    private readonly lines: boolean,
  ) {}

  /** Reads calls behind the bracket; false: there is none, and what was read is text. */
  *read(onlyDeclared: boolean): Step<boolean> {
    const { p } = this;
    const { input } = p;
    let count = 0;
    for (; ; count++) {
      const c = yield* skipSpace(input);
      if (count > 0 && c === CLOSE_LIST && !this.lines) {
        input.at++;
        input.forget();
        return true;
      }
      if (!isNamePart(c) || isDigit(c)) break;
      const name = yield* readWhile(input, isNamePart, MAX_NAME);
      if (name === undefined || (onlyDeclared && !p.tools.has(name))) break;
      if ((yield* skipSpace(input)) !== OPEN_CALL) break;
      input.at++;
      const end = yield* this.call(name);
      if (end === "none") break;
      if (end === "broken") return true;
      input.record();
      const next = yield* skipSpace(input);
      if (next === COMMA) input.at++;
      else if (!this.lines && next !== CLOSE_LIST) {
        p.giveBack();
        return true;
      }
    }
    p.giveBack();
    return count > 0;
  }

  /** Reads a call behind its parenthesis. Arguments without a name make it none. */
  private *call(name: string): Step<"done" | "none" | "broken"> {
    const { p } = this;
    const { input, out } = p;
    for (let begun = false; ; begun = true) {
      if (begun) input.record();
      let c = yield* skipSpace(input);
      if (begun && c === COMMA) {
        input.at++;
        c = yield* skipSpace(input);
      } else if (begun && c !== CLOSE_CALL) return this.broken();
      if (c === CLOSE_CALL) {
        input.at++;
        if (!begun) p.start(name);
        input.forget();
        out.arguments(begun ? "}" : "{}");
        out.end();
        return "done";
      }
      const isName = isNamePart(c) && !isDigit(c);
      const key = isName ? yield* readWhile(input, isNamePart, MAX_NAME) : undefined;
      if (isName && begun && key === undefined && input.isAtEnd) {
        // The begin of a name that the text ends in belongs to the arguments.
        out.arguments(`, "${input.recorded().replace(/^[\s,]+/, "")}`);
        return this.broken();
      }
      const equals = key === undefined ? -1 : yield* skipSpace(input);
      if (equals !== EQUALS) return begun ? this.broken() : "none";
      input.at++;
      if (!begun) p.start(name);
      input.forget();
      out.arguments(`${begun ? ", " : "{"}${JSON.stringify(key)}: `);
      yield* skipSpace(input);
      if ((yield* pythonValue(input, p.arguments)) !== "done") return this.broken();
    }
  }

  private broken(): "broken" {
    this.p.leave();
    return "broken";
  }
}
