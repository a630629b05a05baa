/** The filter `pprint`: Python's `pprint.pformat`, 80 columns wide, with the keys of dicts in order. */

import { ChatTemplateError, TemplateLimitError } from "../errors.ts";
import { compare, pairsOf } from "./dict.ts";
import { budget, charge, chargeScan, chargeText, deeper } from "./limits.ts";
import { textLength } from "./sequences.ts";
import { splitLines } from "./strings.ts";
import { repr } from "./text.ts";
import { isDict, isList, PyDict, Tuple, typeName, type Value } from "./values.ts";
import { SPACE_CLASS } from "./whitespace.ts";

const WIDTH = 80;
const WORDS = new RegExp(`[^${SPACE_CLASS}]*[${SPACE_CLASS}]*`, "g");

/** `pformat(value)`. */
export function pprint(value: Value): string {
  const text = format(inKeyOrder(value), 0, 0, 1);
  chargeText(text.length);
  return text;
}

/** @param room columns that must stay free behind it. */
function format(value: Value, indent: number, room: number, level: number): string {
  const line = repr(value);
  if (textLength(line) <= WIDTH - indent - room) return line;
  return deeper(() => {
    if (typeof value === "string") return text(value, indent, room, level);
    if (isDict(value)) return `{${pairs([...pairsOf(value)], indent + 1, room + 1, level)}}`;
    if (isList(value)) return `[${items(value, indent + 1, room + 1, level)}]`;
    if (!(value instanceof Tuple)) return line;
    const end = value.items.length === 1 ? ",)" : ")";
    return `(${items(value.items, indent + 1, room + end.length, level)}${end}`;
  });
}

function items(values: readonly Value[], indent: number, room: number, level: number): string {
  const last = values.length - 1;
  const parts = values.map((value, i) => format(value, indent, i === last ? room : 1, level + 1));
  return parts.join(newline(",", indent));
}

function pairs(values: readonly (readonly [Value, Value])[], indent: number, room: number, level: number): string {
  const last = values.length - 1;
  const parts = values.map(([key, value], i) => {
    const name = repr(key);
    return `${name}: ${format(value, indent + textLength(name) + 2, i === last ? room : 1, level + 1)}`;
  });
  return parts.join(newline(",", indent));
}

function newline(before: string, indent: number): string {
  chargeText(indent);
  return `${before}\n${" ".repeat(indent)}`;
}

/** A long text in several literals, broken behind lines and words. */
function text(value: string, outer: number, outerRoom: number, level: number): string {
  const indent = level === 1 ? outer + 1 : outer;
  const room = level === 1 ? outerRoom + 1 : outerRoom;
  const lines = splitLines(value, true);
  const chunks: string[] = [];
  for (const [i, line] of lines.entries()) {
    const lastLine = i === lines.length - 1;
    const whole = repr(line);
    if (textLength(whole) <= WIDTH - indent - (lastLine ? room : 0)) chunks.push(whole);
    else chunks.push(...words(line, WIDTH - indent, lastLine ? room : 0));
  }
  const joined = chunks.join(newline("", indent));
  return level === 1 && chunks.length > 1 ? `(${joined})` : joined;
}

function words(line: string, width: number, room: number): string[] {
  const chunks: string[] = [];
  const parts = (line.match(WORDS) ?? []).filter((part) => part !== "");
  let current = "";
  for (const [j, part] of parts.entries()) {
    chargeScan(current.length + part.length);
    const candidate = current + part;
    if (textLength(repr(candidate)) <= width - (j === parts.length - 1 ? room : 0)) {
      current = candidate;
      continue;
    }
    if (current !== "") chunks.push(repr(current));
    current = part;
  }
  if (current !== "") chunks.push(repr(current));
  return chunks;
}

/** Keys that can't be compared are ordered by the names of their types. */
function order(a: Value, b: Value): number {
  const { depth } = budget;
  try {
    return compare(a, b);
  } catch (error) {
    if (!(error instanceof ChatTemplateError) || error instanceof TemplateLimitError) throw error;
    budget.depth = depth;
    return typeName(a) < typeName(b) ? -1 : 1;
  }
}

function inKeyOrder(value: Value): Value {
  charge(4);
  if (isList(value)) return deeper(() => value.map(inKeyOrder));
  if (value instanceof Tuple) return deeper(() => new Tuple(value.items.map(inKeyOrder)));
  if (!isDict(value)) return value;
  const sorted = [...value].sort(([a], [b]) => order(a as Value, b as Value));
  const dict = new PyDict();
  if (value instanceof PyDict) for (const [key, original] of value.originals) dict.originals.set(key, original);
  for (const [key, item] of sorted)
    dict.set(
      key,
      deeper(() => inKeyOrder(item)),
    );
  return dict;
}
