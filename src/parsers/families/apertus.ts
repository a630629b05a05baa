import { peek, readWhile, type Step, skipSpace, until } from "../input.ts";
import {
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
} from "../json.ts";
import type { Parsing } from "../parsing.ts";
import { isWord } from "../words.ts";

const OPEN = "<|tools_prefix|>";
const CLOSE = "<|tools_suffix|>";
const MAX_WORD = 16;

export const APERTUS_MARKERS = [OPEN, CLOSE];

/** `done`: nothing more of it comes; `none`: no call was found; `broken`: a call stays unfinished. */
type End = "done" | "none" | "broken";

/** Calls as a list of objects with one member each, whose key is the name: `[{"f": {"a": 1}}, …]`. */
export function* apertus(p: Parsing): Step<void> {
  const { input, out } = p;
  const outside = p.set(OPEN);
  const behindCall = p.set(OPEN, CLOSE);
  const closer = p.set(CLOSE);
  let closerIsDue = false;
  for (;;) {
    const hit: number = yield* until(input, closerIsDue ? behindCall : outside, p.text);
    if (hit < 0) return;
    closerIsDue = false;
    if (hit > 0) {
      out.dropSpace();
      continue;
    }
    input.record(outside.markers[0]!);
    const end = yield* calls();
    if (end === "none") p.giveBack();
    else closerIsDue = end === "broken" || !(yield* p.skipMarkers(closer));
  }

  /** Reads a list of calls, or one without the list. */
  function* calls(): Step<End> {
    const c = yield* skipSpace(input);
    if (c === OPEN_OBJECT) return yield* members();
    if (c !== OPEN_LIST) return "none";
    input.at++;
    for (let any = false; ; ) {
      const next = yield* skipSpace(input);
      if (any && next === CLOSE_LIST) {
        input.at++;
        input.forget();
        return "done";
      }
      if (any && next === COMMA) {
        input.at++;
        continue;
      }
      const end = next === OPEN_OBJECT ? yield* members() : "none";
      if (end === "broken") return end;
      if (end === "none") {
        if (any) p.giveBack();
        return any ? "broken" : "none";
      }
      any = true;
      input.record();
    }
  }

  /** Reads an object, whose brace is next; each member is a call. */
  function* members(): Step<End> {
    input.at++;
    for (let any = false; ; any = true) {
      let c = yield* skipSpace(input);
      if (any && c === COMMA) {
        input.at++;
        c = yield* skipSpace(input);
      } else if (any && c === CLOSE_OBJECT) {
        input.at++;
        return "done";
      }
      const raw = c === QUOTE ? yield* heldJson(input) : undefined;
      const name = raw === undefined ? "" : unquote(raw);
      const isMember = name !== "" && (yield* skipSpace(input)) === COLON;
      if (isMember) input.at++;
      const end = isMember ? yield* call(name) : "none";
      if (end === "none" && any) p.giveBack();
      if (end !== "done") return any ? "broken" : end;
      input.record();
    }
  }

  /** Reads arguments: an object, or null for none. */
  function* call(name: string): Step<End> {
    if ((yield* skipSpace(input)) !== OPEN_OBJECT) {
      const word = yield* readWhile(input, isWord, MAX_WORD);
      if (word !== "null" || (yield* peek(input)) < 0) return "none";
      p.start(name);
      out.arguments("{}");
      out.end();
      return "done";
    }
    p.start(name);
    if ((yield* jsonValue(input, p.arguments)) !== "done") {
      out.leave();
      return "broken";
    }
    out.end();
    return "done";
  }
}
