/** Texts that structural tags of xgrammar let through (`{"type": "structural_tag", "format": …}`, or the older `structures` and `triggers`). */
import { argumentText } from "./argument-styles.ts";
import { instance } from "./json-instance.ts";
import { regexText } from "./regex-text.ts";

/** What an engine would refuse: a tag that it does not know. */
export class StructuralTagError extends Error {
  override readonly name = "StructuralTagError";
}

type Format = Readonly<Record<string, unknown>>;

/**
 * A text that the tag lets through: of an `or` the element whose turn it is by `variant`, of several tags the first, and where a tag may
 * come or not, it does not come. Undefined where any
 * text will do, or where a part (a grammar, an uncommon regular expression) is not understood. Throws StructuralTagError.
 */
export function tagText(tag: unknown, variant = 0): string | undefined {
  if (!isRecord(tag)) throw new StructuralTagError("a structural tag must be an object");
  if (Array.isArray(tag["structures"])) {
    list(tag["triggers"], "triggers");
    const [first] = tag["structures"] as unknown[];
    if (!isRecord(first)) throw new StructuralTagError("structures must be objects");
    return text(first, "begin") + JSON.stringify(instance(first["schema"])) + text(first, "end");
  }
  const { format } = tag;
  if (!isRecord(format)) throw new StructuralTagError("'triggers'");
  const found = formatText(format, variant);
  return found === "" && isFree(format) ? undefined : found;
}

/** Any text may follow what has to come. */
function isFree({ type, elements, at_least_one: isNeeded }: Format): boolean {
  if (type === "any_text" || type === "dispatch") return true;
  const last: unknown = Array.isArray(elements) ? elements.at(-1) : undefined;
  return type === "triggered_tags" ? isNeeded !== true : type === "sequence" && isRecord(last) && isFree(last);
}

/** What an answer says where any text will do. */
const THOUGHT = "I am simulated.";

function formatText(format: unknown, variant: number): string | undefined {
  if (!isRecord(format)) throw new StructuralTagError("a format must be an object");
  const make = FORMATS[String(format["type"])];
  if (make === undefined) throw new StructuralTagError(`unknown format type: ${String(format["type"])}`);
  return make(format, variant);
}

const FORMATS: Readonly<Record<string, (format: Format, variant: number) => string | undefined>> = {
  const_string: (format) => text(format, "value"),
  json_schema({ json_schema: schema, style }) {
    if (typeof schema !== "boolean" && !isRecord(schema)) throw new StructuralTagError("json_schema is missing");
    return argumentText(instance(schema), style, (name) => new StructuralTagError(`unknown style: ${name}`));
  },
  any_text: () => THOUGHT,
  regex: (format) => regexText(text(format, "pattern")),
  grammar(format) {
    text(format, "grammar");
    return undefined;
  },
  sequence: ({ elements }, variant) => joined(texts(elements, "elements", variant)),
  or({ elements }, variant) {
    const all = texts(elements, "elements", variant);
    return all[variant % all.length];
  },
  tag: ({ begin, content, end }, variant) => {
    const last: unknown = Array.isArray(end) ? end[0] : end;
    if (typeof begin !== "string" || typeof last !== "string")
      throw new StructuralTagError("a tag needs begin and end");
    return joined([begin, formatText(content, variant), last]);
  },
  triggered_tags(format, variant) {
    const { at_least_one: isNeeded } = format;
    const triggers = list(format["triggers"], "triggers");
    for (const tag of list(format["tags"], "tags"))
      if (!triggers.some((trigger) => isRecord(tag) && text(tag, "begin").startsWith(String(trigger))))
        throw new StructuralTagError("a tag begins with none of the triggers");
    const first = texts(format["tags"], "tags", variant)[0];
    return isNeeded === true ? first : "";
  },
  tags_with_separator(format, variant) {
    text(format, "separator");
    const first = texts(format["tags"], "tags", variant)[0];
    return format["at_least_one"] === true ? first : "";
  },
  optional: ({ content }) => leftOut(content),
  star: ({ content }) => leftOut(content),
  plus: ({ content }, variant) => formatText(content, variant),
  repeat({ content, min }, variant) {
    const once = formatText(content, variant);
    return typeof min === "number" ? once?.repeat(min) : once;
  },
  dispatch({ rules }) {
    for (const rule of list(rules, "rules")) formatText(list(rule, "rules")[1], 0);
    return "";
  },
};

function leftOut(content: unknown): string {
  formatText(content, 0);
  return "";
}

const texts = (formats: unknown, name: string, variant: number): readonly (string | undefined)[] =>
  list(formats, name).map((format) => formatText(format, variant));

const joined = (parts: readonly (string | undefined)[]): string | undefined =>
  parts.includes(undefined) ? undefined : parts.join("");

function list(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0)
    throw new StructuralTagError(`${name} must be a list that is not empty`);
  return value;
}

function text(format: Format, name: string): string {
  const value = format[name];
  if (typeof value !== "string") throw new StructuralTagError(`${name} must be a text`);
  return value;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
