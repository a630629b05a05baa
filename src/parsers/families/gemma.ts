import { peek, readWhile, type Step, skipSpace, take, until } from "../input.ts";
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

const MAX_NAME = 256;
const MAX_WORD = 4096;
const MAX_DEPTH = 64;

/** The program of such a family. */
export function gemma(family: GemmaFamily): (p: Parsing) => Step<void> {
  return function* run(p) {
    const { input, out } = p;
    const outside = p.set(family.open);
    const behindBroken = p.set(family.open, family.close);
    const closer = p.set(family.close);
    const head = p.set("call:");
    const quote = p.set(family.quote);
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
      const outcome = yield* gemmaObject(p, quote, 0);
      if (outcome === "done") {
        out.end();
        isBroken = !(yield* p.skipMarkers(closer));
      } else {
        out.leave();
        isBroken = true;
      }
    }
  };
}

function* gemmaObject(p: Parsing, quote: MarkerSet, depth: number): Step<Outcome> {
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
    let key: string | undefined = "";
    if ((yield* take(input, quote)) >= 0) {
      const end = yield* until(input, quote, (text) => {
        key += p.special.plain(text);
      });
      if (end < 0) return "cut";
    } else {
      const isKey = (d: number) => d !== COLON && d !== COMMA && d !== CLOSE_OBJECT && d !== CODE_START;
      key = (yield* readWhile(input, isKey, MAX_WORD))?.trim();
    }
    if (key === undefined) return "cut";
    const colon = yield* skipSpace(input);
    if (colon !== COLON) return colon < 0 ? "cut" : "broken";
    input.at++;
    out.arguments(`${count > 0 ? "," : ""}${JSON.stringify(key.replace(/^"(.*)"$/s, "$1"))}:`);
    const outcome = yield* gemmaValue(p, quote, depth + 1);
    if (outcome !== "done") return outcome;
  }
  input.at++;
  out.arguments("}");
  return "done";
}

function* gemmaList(p: Parsing, quote: MarkerSet, depth: number): Step<Outcome> {
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
    const outcome = yield* gemmaValue(p, quote, depth + 1);
    if (outcome !== "done") return outcome;
  }
  input.at++;
  out.arguments("]");
  return "done";
}

function* gemmaValue(p: Parsing, quote: MarkerSet, depth: number): Step<Outcome> {
  const { input, out } = p;
  const c = yield* skipSpace(input);
  if (c === OPEN_OBJECT) return yield* gemmaObject(p, quote, depth);
  if (c === OPEN_LIST) return yield* gemmaList(p, quote, depth);
  if ((yield* take(input, quote)) >= 0) {
    out.arguments('"');
    const end = yield* until(input, quote, (text) => out.arguments(escapeJson(p.special.plain(text))));
    if (end < 0) return "cut";
    out.arguments('"');
    return "done";
  }
  let word = "";
  for (;;) {
    const d = yield* peek(input);
    if (d < 0) return "cut";
    if (d === COMMA || d === CLOSE_OBJECT || d === CLOSE_LIST || d === CODE_START) break;
    if (word.length >= MAX_WORD) return "broken";
    word += input.text[input.at++];
  }
  const text = word.trim();
  out.arguments(parseJson(text) === undefined ? JSON.stringify(word) : text);
  return "done";
}
