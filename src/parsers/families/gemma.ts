import { readWhile, type Step, skipSpace, TOO_LONG, take, until, untilCloser } from "../input.ts";
import {
  CLOSE_LIST,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  escapeJson,
  OPEN_LIST,
  OPEN_OBJECT,
  type Outcome,
  parseJson,
} from "../json.ts";
import { CODE_START, type MarkerSet } from "../markers.ts";
import type { Parsing } from "../parsing.ts";
import { isNamePart } from "../python.ts";

/** `call:NAME{key:value,…}` with bare keys and strings between a marker of their own. */
export interface GemmaFamily {
  readonly open: string;
  readonly close: string;
  readonly quote: string;
}

const OPEN_TAG = 60;
const MAX_NAME = 256;
const MAX_KEY = 256;
const MAX_DEPTH = 64;

interface Quotes {
  readonly quote: MarkerSet;
  /** The quote, and what shows that a quoted key is none. */
  readonly keyEnds: MarkerSet;
  /** What ends a value without quotes. */
  readonly wordEnds: MarkerSet;
}

/** The program of such a family. */
export function gemma(family: GemmaFamily): (p: Parsing) => Step<void> {
  return function* run(p) {
    const { input, out } = p;
    const outside = p.set(family.open);
    const behindBroken = p.set(family.open, family.close);
    const closer = p.set(family.close);
    const head = p.set("call:");
    const quotes = {
      quote: p.set(family.quote),
      keyEnds: p.set(family.quote, family.close, family.open),
      wordEnds: p.set(",", "}", "]", family.quote, family.close, family.open),
    };
    let isBroken = false;
    for (;;) {
      const hit = yield* until(input, isBroken ? behindBroken : outside, p.text);
      if (hit < 0) return;
      isBroken = false;
      if (hit > 0) continue;
      input.record(outside.markers[0]!);
      yield* skipSpace(input);
      const isCall = (yield* take(input, head)) >= 0;
      const name = isCall ? yield* readWhile(input, (c) => isNamePart(c) || c === COLON, MAX_NAME) : undefined;
      if (name === undefined || name === "" || (yield* skipSpace(input)) !== OPEN_OBJECT) {
        p.giveBack();
        continue;
      }
      p.start(name);
      const outcome = yield* gemmaObject(p, quotes, 0);
      if (outcome === "done") {
        out.end();
        isBroken = !(yield* p.skipMarkers(closer));
      } else {
        p.leave();
        isBroken = true;
      }
    }
  };
}

function* gemmaObject(p: Parsing, quotes: Quotes, depth: number): Step<Outcome> {
  const { input, out } = p;
  input.at++;
  if (depth > MAX_DEPTH) return "broken";
  out.arguments("{");
  for (let count = 0; ; count++) {
    let c = yield* skipSpace(input);
    if (c === CLOSE_OBJECT) break;
    if (c < 0) return "cut";
    if (count > 0) {
      if (c !== COMMA) return "broken";
      input.at++;
      c = yield* skipSpace(input);
      if (c < 0) return "cut";
      if (c === CLOSE_OBJECT) break;
    }
    input.record();
    let key: string | undefined = "";
    if ((yield* take(input, quotes.quote)) >= 0) {
      let said = "";
      const keep = (text: string) => {
        said += p.special.plain(text);
      };
      const end = yield* untilCloser(input, quotes.keyEnds, keep, MAX_KEY);
      if (end > 0) input.at -= quotes.keyEnds.markers[end]!.length;
      if (end > 0 || end === TOO_LONG) return "broken";
      key = end < 0 ? undefined : said;
    } else {
      const isKey = (d: number) =>
        d !== COLON && d !== COMMA && d !== CLOSE_OBJECT && d !== OPEN_TAG && d !== CODE_START;
      key = (yield* readWhile(input, isKey, MAX_KEY))?.trim();
    }
    if (key === undefined) return cutKey(p, quotes, count > 0);
    const colon = yield* skipSpace(input);
    if (colon !== COLON) return colon < 0 ? "cut" : "broken";
    input.at++;
    input.forget();
    out.arguments(`${count > 0 ? "," : ""}${JSON.stringify(key.replace(/^"(.*)"$/s, "$1"))}:`);
    const outcome = yield* gemmaValue(p, quotes, depth + 1);
    if (outcome !== "done") return outcome;
  }
  input.at++;
  out.arguments("}");
  return "done";
}

/** A key that is none, or that the text ended in: then it belongs to the arguments. */
function cutKey(p: Parsing, { quote }: Quotes, begun: boolean): Outcome {
  const { input, out } = p;
  if (!input.isAtEnd) return "broken";
  const text = p.special.plain(input.recorded());
  const mark = p.special.plain(quote.markers[0]!);
  const key = escapeJson(text.startsWith(mark) ? text.slice(mark.length) : text);
  if (key !== "") out.arguments(`${begun ? "," : ""}"${key}`);
  return "cut";
}

function* gemmaList(p: Parsing, quotes: Quotes, depth: number): Step<Outcome> {
  const { input, out } = p;
  input.at++;
  if (depth > MAX_DEPTH) return "broken";
  out.arguments("[");
  for (let count = 0; ; count++) {
    let c = yield* skipSpace(input);
    if (c === CLOSE_LIST) break;
    if (c < 0) return "cut";
    if (count > 0) {
      if (c !== COMMA) return "broken";
      input.at++;
      c = yield* skipSpace(input);
      if (c === CLOSE_LIST) break;
      if (c >= 0) out.arguments(",");
    }
    const outcome = yield* gemmaValue(p, quotes, depth + 1);
    if (outcome !== "done") return outcome;
  }
  input.at++;
  out.arguments("]");
  return "done";
}

function* gemmaValue(p: Parsing, quotes: Quotes, depth: number): Step<Outcome> {
  const { input, out } = p;
  const c = yield* skipSpace(input);
  if (c === OPEN_OBJECT) return yield* gemmaObject(p, quotes, depth);
  if (c === OPEN_LIST) return yield* gemmaList(p, quotes, depth);
  if ((yield* take(input, quotes.quote)) >= 0) {
    out.arguments('"');
    const end = yield* untilCloser(input, quotes.quote, (text) => out.arguments(escapeJson(p.special.plain(text))));
    if (end < 0) return "cut";
    out.arguments('"');
    return "done";
  }
  let word = "";
  const ends = quotes.wordEnds;
  const hit = yield* untilCloser(input, ends, (text) => {
    word += text;
  });
  if (hit < 0) {
    out.arguments(p.special.plain(word.trimStart()));
    return "cut";
  }
  input.at -= ends.markers[hit]!.length;
  if (word.trim() === "") return "broken";
  const text = word.trim();
  out.arguments(parseJson(text) === undefined ? JSON.stringify(p.special.plain(word)) : text);
  return "done";
}
