/** Printing: Python's `str()` and `repr()`. */
import { keysOf, pairsOf } from "./dict.ts";
import { charge, chargeScan, chargeText, deeper } from "./limits.ts";
import { floatText, intText } from "./numbers.ts";
import { View } from "./objects.ts";
import { type Dict, isDict, isList, Markup, Namespace, PyFloat, Tuple, Undefined, type Value } from "./values.ts";

/** `str(value)`. */
export function str(value: Value): string {
  if (typeof value === "string") return value;
  if (value instanceof Markup) return value.text;
  if (value instanceof Undefined) return "";
  return repr(value);
}

/** `repr(value)`. */
export function repr(value: Value): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "boolean") return value ? "True" : "False";
  if (value === null) return "None";
  charge(2);
  if (typeof value === "string") return quoted(value);
  if (value instanceof Markup) return `Markup(${quoted(value.text)})`;
  if (typeof value === "bigint") return intText(value);
  if (value instanceof PyFloat) return floatText(value.value);
  if (value instanceof Undefined) return "Undefined";
  charge(8);
  return deeper(() => {
    const text = container(value);
    chargeText(text.length);
    return text;
  });
}

const list = (values: Iterable<Value>): string => Array.from(values, repr).join(", ");
const dictText = (dict: Dict): string =>
  `{${Array.from(pairsOf(dict), ([k, v]) => `${repr(k)}: ${repr(v)}`).join(", ")}}`;

function container(
  value: Exclude<Value, string | number | bigint | boolean | null | PyFloat | Markup | Undefined>,
): string {
  if (isList(value)) return `[${list(value)}]`;
  if (value instanceof Tuple) return `(${list(value.items)}${value.items.length === 1 ? "," : ""})`;
  if (isDict(value)) return dictText(value);
  if (value instanceof Namespace) {
    if (printing.has(value)) return "<Namespace {...}>";
    printing.add(value);
    try {
      return `<Namespace ${dictText(value.attributes)}>`;
    } finally {
      printing.delete(value);
    }
  }
  if (value instanceof View)
    return `${value.typeName}([${list(value.kind === "keys" ? keysOf(value.dict) : value.items())}])`;
  return value.repr();
}
/** A namespace can hold itself. */
const printing = new Set<Namespace>();

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
/** What `repr` may have to escape: control, format, unassigned and private characters, separators other than the space. */
const UNPRINTABLE = /[\\\n\r\t]|(?! )[\p{C}\p{Z}]/gu;

/** A str literal as Python writes it: single quotes, double ones if it has single ones only. */
export function quoted(text: string): string {
  chargeScan(text.length);
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let body = text.replace(UNPRINTABLE, escaped);
  if (quote === "'" && body.includes("'")) body = body.replaceAll("'", "\\'");
  return quote + body + quote;
}

function escaped(character: string): string {
  const known = ESCAPES[character];
  if (known !== undefined) return known;
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

/** `ascii(value)`: repr with all beyond ASCII escaped. */
export const asciiText = (text: string): string => text.replace(/[^\0-\x7f]/gu, escaped);
