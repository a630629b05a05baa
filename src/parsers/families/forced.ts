import { type Step, skipSpace, until } from "../input.ts";
import { jsonValue, OPEN_LIST, OPEN_OBJECT } from "../json.ts";
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
    if (name === undefined && (c === OPEN_OBJECT || c === OPEN_LIST)) yield* calls(p, { bare: true });
    else input.rewind(0);
    return yield* family(p);
  };
}
