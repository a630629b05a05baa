import { type Step, skipSpace, until } from "../input.ts";
import { CLOSE_LIST, jsonValue, OPEN_LIST, OPEN_OBJECT } from "../json.ts";
import type { Parsing } from "../parsing.ts";
import { calls } from "./json-blocks.ts";

/** The program of no family: everything is text. */
export function* textOnly(p: Parsing): Step<void> {
  yield* until(p.input, p.set(), p.text);
}

/** Reads what a JSON grammar forced: bare arguments of the named tool, or calls; an answer that begins otherwise by `family`. */
export function forcedCalls(name: string | undefined, family: (p: Parsing) => Step<void>): (p: Parsing) => Step<void> {
  return function* run(p) {
    const { input, out } = p;
    input.record();
    const c = yield* skipSpace(input);
    if (name !== undefined && c === OPEN_OBJECT) {
      p.start(name);
      if ((yield* jsonValue(input, p.arguments)) === "done") out.end();
      else out.leave();
      return yield* textOnly(p);
    }
    const isList = name === undefined && c === OPEN_LIST && (yield* beginsJsonList(p));
    if (isList || (name === undefined && c === OPEN_OBJECT)) yield* calls(p, { bare: true });
    else input.rewind(0);
    return yield* family(p);
  };
}

/** Reads what is JSON unless it is calls: an object has nothing in it but itself, whatever its texts look like. */
export function jsonOrCalls(family: (p: Parsing) => Step<void>): (p: Parsing) => Step<void> {
  return function* run(p) {
    p.input.record();
    const isObject = (yield* skipSpace(p.input)) === OPEN_OBJECT;
    p.input.rewind(0);
    yield* isObject ? textOnly(p) : family(p);
  };
}

/** Whether the bracket that is next opens a list of objects; formats that are not JSON have brackets too. It stays unread. */
function* beginsJsonList(p: Parsing): Step<boolean> {
  const { input } = p;
  input.at++;
  const c = yield* skipSpace(input);
  input.rewind(0);
  input.record();
  yield* skipSpace(input);
  return c === OPEN_OBJECT || c === CLOSE_LIST;
}
