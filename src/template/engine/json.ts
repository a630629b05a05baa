/** `tojson` of transformers: Python's `json.dumps`. */
import { ChatTemplateError } from "../errors.ts";
import { compareTexts, keyOf, pairsOf } from "./dict.ts";
import { budget, charge, chargeText, deeper, MAX_DEPTH } from "./limits.ts";
import { asIndex, floatText, intText } from "./numbers.ts";
import { runtime } from "./runtime.ts";
import { repeat } from "./strings.ts";
import {
  type Dict,
  isDict,
  isInt,
  isText,
  itemsOf,
  PyFloat,
  Tuple,
  textOf,
  truthy,
  typeError,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";

export interface Style {
  readonly ascii: boolean;
  /** Text of one level; undefined: all on one line. */
  readonly indent: string | undefined;
  readonly comma: string;
  readonly colon: string;
  readonly sorted: boolean;
  /** Of large values: what was written ahead in this style. */
  readonly written?: ReadonlyMap<Value, Written>;
}

/** The text of a large value, and what writing it takes of a render's budget. */
export interface Written {
  readonly text: string;
  readonly price: number;
  /** Levels of values in it, itself included. */
  readonly depth: number;
  /** Where it stands, if its lines are indented. */
  readonly newline: string;
}

export const PLAIN: Style = { ascii: false, indent: undefined, comma: ", ", colon: ": ", sorted: false };

/** What an array or object takes of the budget, besides its text. */
export const CONTAINER_PRICE = 8;

/** `json.dumps(value, ensure_ascii, indent, separators, sort_keys)`. */
export function dumps(value: Value, ascii: Value, indent: Value, separators: Value, sorted: Value): string {
  const style = styleOf(ascii, indent, separators, sorted);
  return dump(value, runtime.written?.find((each) => isSame(each, style)) ?? style, "\n");
}

/** The style that such arguments ask for. Throws ChatTemplateErrors. */
export function styleOf(ascii: Value, indent: Value, separators: Value, sorted: Value): Style {
  if (ascii === false && indent === null && separators === null && sorted === false) return PLAIN;
  const level =
    indent === null ? undefined : typeof indent === "string" ? indent : repeat(" ", Math.max(0, asIndex(indent)));
  const [comma, colon] = separators === null ? [level === undefined ? ", " : ",", ": "] : separatorsOf(separators);
  return { ascii: truthy(ascii), indent: level, comma, colon, sorted: truthy(sorted) };
}

export const isSame = (a: Style, b: Style): boolean =>
  a.ascii === b.ascii && a.indent === b.indent && a.comma === b.comma && a.colon === b.colon && a.sorted === b.sorted;

function separatorsOf(value: Value): [comma: string, colon: string] {
  const items = itemsOf(value) ?? [];
  const comma = textOf(items[0] ?? null);
  const colon = textOf(items[1] ?? null);
  if (items.length !== 2 || comma === undefined || colon === undefined)
    return typeError("separators must be two strings");
  return [comma, colon];
}

export function dump(value: Value, style: Style, newline: string): string {
  if (typeof value === "string") return quoted(value, style.ascii);
  if (typeof value === "number") return String(value);
  if (value === null) return "null";
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value === "bigint") return intText(value);
  if (value instanceof PyFloat) return jsonFloat(value.value);
  if (isText(value)) return quoted(value.text, style.ascii);
  if (value instanceof Undefined) return typeError("Object of type Undefined is not JSON serializable");
  const items = itemsOf(value);
  if (items === undefined && !isDict(value))
    return typeError(`Object of type ${typeName(value)} is not JSON serializable`);
  const ahead = style.written?.get(value);
  if (ahead !== undefined && fits(ahead, style, newline)) {
    charge(ahead.price);
    return ahead.text;
  }
  charge(CONTAINER_PRICE);
  const text = deeper(() => (items === undefined ? dict(value as Dict, style, newline) : list(items, style, newline)));
  chargeText(text.length);
  return text;
}

const fits = ({ depth, newline }: Written, { indent }: Style, here: string): boolean =>
  budget.depth + depth <= MAX_DEPTH && (indent === undefined || newline === here);

function list(items: readonly Value[], style: Style, newline: string): string {
  if (items.length === 0) return "[]";
  const { indent, comma } = style;
  const inner = indent === undefined ? newline : newline + indent;
  const between = indent === undefined ? comma : comma + inner;
  let out = "";
  for (const item of items) out += out === "" ? dump(item, style, inner) : between + dump(item, style, inner);
  return indent === undefined ? `[${out}]` : `[${inner}${out}${newline}]`;
}

function dict(value: Dict, style: Style, newline: string): string {
  if (value.size === 0) return "{}";
  const { indent, comma, colon } = style;
  const inner = indent === undefined ? newline : newline + indent;
  const between = indent === undefined ? comma : comma + inner;
  let out = "";
  for (const [key, item] of style.sorted ? sortedPairs(value) : pairsOf(value))
    out += `${out === "" ? "" : between}${quotedKey(key, style)}${colon}${dump(item, style, inner)}`;
  return indent === undefined ? `{${out}}` : `{${inner}${out}${newline}}`;
}

export function sortedPairs(value: Dict): (readonly [Value, Value])[] {
  const pairs = [...pairsOf(value)];
  const texts = pairs.every(([key]) => typeof key === "string");
  const numbers = pairs.every(([key]) => isInt(key) || key instanceof PyFloat || typeof key === "boolean");
  if (!texts && !numbers && pairs.length > 1) typeError("keys of different kinds cannot be sorted");
  return pairs.sort(([a], [b]) =>
    texts ? compareTexts(a as string, b as string) : Number(keyOf(a)) - Number(keyOf(b)),
  );
}

function keyText(key: Value): string {
  const text = textOf(key);
  if (text !== undefined) return text;
  if (key === null) return "null";
  if (typeof key === "boolean") return String(key);
  if (isInt(key)) return intText(key);
  if (key instanceof PyFloat) return jsonFloat(key.value);
  const kind = key instanceof Tuple ? "tuple" : typeName(key);
  throw new ChatTemplateError(`keys must be str, int, float, bool or None, not ${kind}`);
}

function jsonFloat(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  return Number.isFinite(value) ? floatText(value) : value > 0 ? "Infinity" : "-Infinity";
}

const LONE_SURROGATE = /\\ud[89a-f][0-9a-f]{2}/;

/** The text of a key of an object. */
export const quotedKey = (key: Value, { ascii }: Style): string => quoted(keyText(key), ascii);

/** JavaScript writes the same escapes as Python, but escapes lone surrogates too. */
function quoted(text: string, ascii: boolean): string {
  charge(1 + (text.length >> 3));
  let out = JSON.stringify(text);
  if (ascii)
    return out.replace(/[\x7f-\uffff]/g, (c) =>
      c === "\x7f" ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  if (LONE_SURROGATE.test(out)) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON escapes them
    out = `"${text.replace(/["\\\0-\x1f]/g, (c) => JSON.stringify(c).slice(1, -1))}"`;
  }
  return out;
}
