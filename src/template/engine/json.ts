/** `tojson` of transformers: Python's `json.dumps`. */
import { ChatTemplateError } from "../errors.ts";
import { compareTexts, keyOf, pairsOf } from "./dict.ts";
import { charge, chargeText, deeper } from "./limits.ts";
import { asIndex, floatText, intText } from "./numbers.ts";
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

interface Style {
  readonly ascii: boolean;
  /** Text of one level; undefined: all on one line. */
  readonly indent: string | undefined;
  readonly comma: string;
  readonly colon: string;
  readonly sorted: boolean;
}

const PLAIN: Style = { ascii: false, indent: undefined, comma: ", ", colon: ": ", sorted: false };

/** `json.dumps(value, ensure_ascii, indent, separators, sort_keys)`. */
export function dumps(value: Value, ascii: Value, indent: Value, separators: Value, sorted: Value): string {
  if (ascii === false && indent === null && separators === null && sorted === false) return dump(value, PLAIN, "\n");
  const level =
    indent === null ? undefined : typeof indent === "string" ? indent : repeat(" ", Math.max(0, asIndex(indent)));
  const [comma, colon] = separators === null ? [level === undefined ? ", " : ",", ": "] : separatorsOf(separators);
  return dump(value, { ascii: truthy(ascii), indent: level, comma, colon, sorted: truthy(sorted) }, "\n");
}

function separatorsOf(value: Value): [comma: string, colon: string] {
  const items = itemsOf(value) ?? [];
  const comma = textOf(items[0] ?? null);
  const colon = textOf(items[1] ?? null);
  if (items.length !== 2 || comma === undefined || colon === undefined)
    return typeError("separators must be two strings");
  return [comma, colon];
}

function dump(value: Value, style: Style, newline: string): string {
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
  charge(8);
  const text = deeper(() => (items === undefined ? dict(value as Dict, style, newline) : list(items, style, newline)));
  chargeText(text.length);
  return text;
}

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
    out += `${out === "" ? "" : between}${quoted(keyText(key), style.ascii)}${colon}${dump(item, style, inner)}`;
  return indent === undefined ? `{${out}}` : `{${inner}${out}${newline}}`;
}

function sortedPairs(value: Dict): (readonly [Value, Value])[] {
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
