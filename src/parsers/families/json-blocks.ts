import { type CallOutcome, type CallShape, callList } from "../calls.ts";
import { look, type Step, skipSpace, until } from "../input.ts";
import { COMMA, OPEN_LIST, OPEN_OBJECT } from "../json.ts";
import { jsonText } from "../json-text.ts";
import type { MarkerSet } from "../markers.ts";
import type { Parsing } from "../parsing.ts";

/** Calls as JSON objects, or lists of them, between markers or bare in the text. */
export interface JsonBlocks {
  readonly open?: readonly string[];
  readonly close?: readonly string[];
  /** Where an object or a list without a marker may be a call. */
  readonly bare?: "start" | "anywhere";
  readonly shape?: CallShape;
  /** A fence around calls, which is text around anything else. */
  readonly fence?: readonly [string, string];
  /** Markers around visible text. */
  readonly drop?: readonly string[];
  /** What stands between these is text, calls in it do not count. */
  readonly opaque?: readonly [string, string];
}

const BRACKETS = ["{", "["];
const SEMICOLON = 59;

/** The program of such a family. */
export function jsonBlocks(family: JsonBlocks): (p: Parsing) => Step<void> {
  const { open = [], close = [], bare, fence, drop = [], opaque } = family;
  const shape = { ...family.shape, close: [...open, ...close, ...drop] };
  const bareShape = { ...shape, bare: true };
  return function* run(p) {
    const { input } = p;
    const brackets = bare === "anywhere" ? BRACKETS : [];
    // In this order: markers, the fence, brackets, what is dropped, what hides calls; closers only where one is due.
    const strict = open.length;
    const written = strict + (fence === undefined ? 0 : 1);
    const openers = [...open, ...(fence === undefined ? [] : [fence[0]]), ...brackets];
    const others = [...openers, ...drop, ...(opaque === undefined ? [] : [opaque[0]])];
    const closers = p.set(...close, ...(fence === undefined ? [] : [fence[1]]));
    const outside = p.set(...others);
    const behindBroken = p.set(...others, ...close);
    const endOfOpaque = p.set(...(opaque === undefined ? [] : [opaque[1]]));
    let closerIsDue = false;
    if (bare === "start") {
      input.record();
      const c = yield* skipSpace(input);
      const isMarker = (yield* look(input, outside)) >= 0;
      if (!isMarker && (c === OPEN_OBJECT || c === OPEN_LIST)) yield* calls(p, bareShape);
      else input.rewind(0);
    }
    for (;;) {
      const set: MarkerSet = closerIsDue ? behindBroken : outside;
      const hit = yield* until(input, set, p.text);
      if (hit < 0) return;
      if (hit >= others.length) closerIsDue = false;
      if (hit >= openers.length + drop.length && hit < others.length) {
        p.text(set.markers[hit]!);
        if ((yield* until(input, endOfOpaque, p.text)) >= 0) p.text(endOfOpaque.markers[0]!);
      }
      if (hit >= openers.length) continue;
      const isBare = hit >= written;
      if (isBare) input.at--;
      input.record(isBare ? "" : set.markers[hit]!);
      const c = yield* skipSpace(input);
      if (c !== OPEN_OBJECT && c !== OPEN_LIST) p.giveBack();
      else if (yield* calls(p, hit >= strict ? bareShape : shape)) {
        closerIsDue = !isBare && !(yield* p.skipMarkers(closers)) && close.length > 0;
      }
    }
  };
}

/** Reads the calls that follow one another from a bracket on; false: there was none, and what was read is text. */
export function* calls(p: Parsing, shape: CallShape): Step<boolean> {
  const { input } = p;
  let outcome = yield* oneValue(p, shape);
  if (outcome !== "call") return outcome === "broken";
  for (;;) {
    input.record();
    let c = yield* skipSpace(input);
    if (c === SEMICOLON || c === COMMA) {
      input.at++;
      c = yield* skipSpace(input);
    }
    if (c !== OPEN_OBJECT) {
      p.giveBack();
      return true;
    }
    outcome = yield* oneValue(p, shape);
    if (outcome !== "call") return true;
  }
}

function* oneValue(p: Parsing, shape: CallShape): Step<CallOutcome> {
  const stack: number[] = [];
  const outcome = yield* callList(p, shape, stack);
  if (outcome === "call" || outcome === "broken") return outcome;
  p.giveBack();
  // The rest of a bare value that is no call is text too: what is inside it does not count.
  if (outcome === "open" && shape.bare === true) yield* jsonText(p.input, p.text, stack);
  return outcome;
}
