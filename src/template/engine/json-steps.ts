/**
 * `tojson` of large values, written ahead in steps: templates and encoders ask for such a text in the middle of an expression, where
 * nothing can give way.
 */
import { PIECE_ITEMS, PIECE_TEXT, type Steps } from "../../steps.ts";
import { ChatTemplateError } from "../errors.ts";
import { pairsOf } from "./dict.ts";
import { CONTAINER_PRICE, dump, quotedKey, type Style, sortedPairs, type Written } from "./json.ts";
import { budget, charge, MAX_DEPTH, refill, tooDeep } from "./limits.ts";
import { isDict, isList, type Value } from "./values.ts";

/** Values, and pieces of text of so many UTF-16 units, that are written in one go. */
const SMALL = 1 << 11;
const UNITS = 32;
/** So many of them are no trouble to write when they are asked for, even 1000 times. */
const TINY = 1 << 6;

/** Is a value written in far less than a turn may take? Looks at no more of it than that. */
export const isSmall = (value: unknown): boolean => depthOf(value, { left: SMALL }) >= 0;

/** Levels of arrays and objects in a value; negative: there is too much in it. */
function depthOf(value: unknown, weight: { left: number }): number {
  if (typeof value === "string") weight.left -= value.length / UNITS;
  if (typeof value !== "object" || value === null) return weight.left < 0 ? -1 : 0;
  const inside: Iterable<unknown> = Array.isArray(value)
    ? value
    : value instanceof Map
      ? value.values()
      : Object.values(value);
  let deepest = 0;
  for (const item of inside) {
    if (--weight.left < 0) return -1;
    const depth = depthOf(item, weight);
    if (depth < 0) return -1;
    if (depth > deepest) deepest = depth;
  }
  return deepest + 1;
}

/**
 * The styles, with the texts of these values, unless they are tiny, and of all large ones in them. What cannot be written is left out:
 * whoever asks for it is told why.
 */
export function* writtenAhead(values: Iterable<Value>, styles: readonly Style[]): Steps<readonly Style[]> {
  const ahead = styles.map((style) => ({ style, written: new Map<Value, Written>() }));
  let seen = 0;
  for (const value of values) {
    if (++seen % PIECE_ITEMS === 0) yield;
    if ((!isList(value) && !isDict(value)) || depthOf(value, { left: TINY }) >= 0) continue;
    for (const { style, written } of ahead) {
      try {
        yield* write(value, style, "\n", written);
        yield;
      } catch (error) {
        if (!(error instanceof ChatTemplateError)) throw error;
      }
    }
  }
  return ahead.map(({ style, written }) => ({ ...style, written }));
}

/** A value's text in steps. As `dump` with a budget of its own, it throws a TemplateLimitError for what takes too much. */
export function* jsonSteps(value: Value, style: Style): Steps<string> {
  if (isSmall(value) || (!isList(value) && !isDict(value))) {
    refill();
    return dump(value, style, "\n");
  }
  const { text, price, depth } = yield* write(value, style, "\n", new Map());
  refill();
  charge(price);
  if (depth > MAX_DEPTH) tooDeep();
  return text;
}

function* write(value: Value, style: Style, newline: string, written: Map<Value, Written>): Steps<Written> {
  const { indent, comma, colon } = style;
  const known = written.get(value);
  if (known !== undefined && (indent === undefined || known.newline === newline)) return known;
  const inner = indent === undefined ? newline : newline + indent;
  const between = indent === undefined ? comma : comma + inner;
  let [text, piece, price, depth, count] = ["", "", CONTAINER_PRICE, 0, 0];
  for (const [key, item] of entriesOf(value, style)) {
    refill(); // each piece is charged for when it is asked for
    const full = budget.left;
    piece += (count++ === 0 ? "" : between) + (key === undefined ? "" : quotedKey(key, style) + colon);
    const levels = depthOf(item, { left: SMALL });
    if (levels >= 0 || typeof item === "string") piece += dump(item, style, inner);
    price += full - budget.left;
    if (levels < 0 && typeof item !== "string") {
      const inside: Written = yield* write(item, style, inner, written);
      text += piece + inside.text;
      piece = "";
      price += inside.price;
      depth = Math.max(depth, inside.depth);
    } else depth = Math.max(depth, levels);
    if (piece.length < PIECE_TEXT && count % (8 * PIECE_ITEMS) !== 0) continue;
    text += flat(piece);
    piece = "";
    yield;
  }
  text += flat(piece);
  const [open, close] = isDict(value) ? "{}" : "[]";
  const whole = indent === undefined ? open + text + close : open + inner + text + newline + close;
  const all: Written = { text: whole, price: price + (whole.length >> 5), depth: depth + 1, newline };
  if (known === undefined) written.set(value, all);
  return all;
}

function* entriesOf(value: Value, { sorted }: Style): Iterable<readonly [key: Value | undefined, item: Value]> {
  if (isList(value)) for (const item of value) yield [undefined, item];
  else if (isDict(value)) yield* sorted ? sortedPairs(value) : pairsOf(value);
}

/** A text of many parts as one: reading all of them takes milliseconds where there are very many. */
const flat = (text: string): string => (text.charCodeAt(0) < 0 ? "" : text); // a look that is not used is left out when it is compiled
