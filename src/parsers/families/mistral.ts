import { readWhile, type Step, skipSpace, take, until } from "../input.ts";
import { jsonValue, OPEN_LIST, OPEN_OBJECT } from "../json.ts";
import type { Parsing } from "../parsing.ts";
import { isNamePart } from "../python.ts";
import { calls } from "./json-blocks.ts";

export const MISTRAL_MARKERS = ["[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"];

const MAX_NAME = 256;

/** `[TOOL_CALLS]` before a list of objects, or before `name[CALL_ID]id[ARGS]{…}`, where both marks may be missing. */
export function* mistral(p: Parsing): Step<void> {
  const { input, out } = p;
  const outside = p.set("[TOOL_CALLS]");
  const idStart = p.set("[CALL_ID]");
  const argumentsStart = p.set("[ARGS]");
  for (;;) {
    if ((yield* until(input, outside, p.text)) < 0) return;
    input.record(outside.markers[0]!);
    const c = yield* skipSpace(input);
    if (c === OPEN_OBJECT || c === OPEN_LIST) {
      yield* calls(p, { ids: true });
      continue;
    }
    const name = yield* readWhile(input, isNamePart, MAX_NAME);
    yield* skipSpace(input);
    let id: string | undefined;
    if ((yield* take(input, idStart)) >= 0) id = yield* readWhile(input, isNamePart, MAX_NAME);
    yield* take(input, argumentsStart);
    if (name === undefined || name === "" || (yield* skipSpace(input)) !== OPEN_OBJECT) {
      p.giveBack();
      continue;
    }
    p.start(name, id);
    if ((yield* jsonValue(input, p.arguments)) === "done") out.end();
    else out.leave();
  }
}
