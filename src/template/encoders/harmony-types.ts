/** Functions as TypeScript, as the package openai-harmony declares them to gpt-oss. */

import type { Steps } from "../../steps.ts";
import { intText } from "../engine/numbers.ts";
import { type Dict, isDict, isInt, isList, PyFloat, textOf, type Value } from "../engine/values.ts";
import { joined, refuse } from "./conversation.ts";
import { field, functionOf } from "./fields.ts";

const MAX_DEPTH = 100;

/** The section of the developer message that declares the functions. */
export function* namespaceText(tools: readonly Value[]): Steps<string> {
  const declared = tools.map(functionOf);
  let functions = "";
  for (const each of declared) {
    const name = textOf(field(each, "name")) ?? refuse("A function must have a name", "tools");
    const comments = linesOf(textOf(field(each, "description")) ?? "").map((line) => `// ${line}\n`);
    const parameters = field(each, "parameters");
    const type = parameters === null ? "()" : `(_: ${yield* parametersText(parameters)})`;
    functions += `${comments.join("")}type ${name} = ${type} => any;\n\n`;
    yield;
  }
  return `# Tools\n\n## functions\n\nnamespace functions {\n\n${functions}} // namespace functions`;
}

/** The type of a function's parameters: an object, of which there may be very many. */
function* parametersText(schema: Value): Steps<string> {
  if (!isDict(schema) || isList(field(schema, "oneOf")) || text(schema, "type") !== "object")
    return typeText(schema, "");
  const properties = propertiesOf(schema, "");
  return objectTextOf(schema, "", yield* joined([...properties], (property) => property()));
}

/** Lines without their ends; the end of the last one is none. */
function linesOf(text: string): readonly string[] {
  const lines = text.split("\n").map((line, at, { length }) => (at < length - 1 ? line.replace(/\r$/, "") : line));
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

const text = (schema: Value, key: string): string | undefined =>
  isDict(schema) ? textOf(field(schema, key)) : undefined;
const list = (schema: Value, key: string): readonly Value[] | undefined => {
  const value = isDict(schema) ? field(schema, key) : null;
  return isList(value) ? value : undefined;
};

/** @param indent of the lines inside; the type itself begins where the caller stands. */
function typeText(schema: Value, indent: string): string {
  if (indent.length > 4 * MAX_DEPTH) refuse("The parameters of a function nest too deep", "tools");
  const variants = list(schema, "oneOf");
  if (variants !== undefined) return variants.map((each) => `\n${indent} | ${variantText(each, indent)}`).join("");
  const types = list(schema, "type")?.flatMap((each) => textOf(each) ?? []);
  if (types !== undefined && types.length > 0)
    return types.map((each) => (each === "integer" ? "number" : each)).join(" | ");
  switch (text(schema, "type")) {
    case "object":
      return objectText(schema as Dict, indent);
    case "string": {
      const words = list(schema, "enum")?.flatMap((each) => textOf(each) ?? []) ?? [];
      return words.length > 0 ? words.map((word) => `"${word}"`).join(" | ") : "string";
    }
    case "number":
    case "integer":
      return "number";
    case "boolean":
      return "boolean";
    case "array": {
      const items = (schema as Dict).get("items");
      return items === undefined ? "Array<any>" : `${typeText(items, indent)}[]`;
    }
  }
  return "any";
}

/** A type, or null where the schema says so. */
function nullableText(schema: Value, indent: string): string {
  const type = typeText(schema, indent);
  const nullable = isDict(schema) && field(schema, "nullable") === true;
  return nullable && !type.includes("null") ? `${type} | null` : type;
}

function variantText(variant: Value, indent: string): string {
  const told = [text(variant, "description"), defaultText(variant, true)].filter((each) => each !== undefined);
  return nullableText(variant, `${indent}   `) + (told.length === 0 ? "" : ` // ${told.join(" ")}`);
}

function objectText(schema: Dict, indent: string): string {
  return objectTextOf(schema, indent, Array.from(propertiesOf(schema, indent), (property) => property()).join(""));
}

function objectTextOf(schema: Dict, indent: string, properties: string): string {
  const description = text(schema, "description");
  return `${description === undefined ? "" : `${indent}// ${description}\n`}{\n${properties}${indent}}`;
}

/** The texts of an object's properties, not yet made. */
function* propertiesOf(schema: Dict, indent: string): Iterable<() => string> {
  const properties = field(schema, "properties");
  if (!isDict(properties)) return;
  const required = new Set(list(schema, "required"));
  for (const [key, property] of properties) {
    const name = String(key) + (required.has(String(key)) ? "" : "?");
    yield () => propertyText(name, property, indent);
  }
}

function propertyText(name: string, property: Value, indent: string): string {
  const title = text(property, "title");
  const examples = list(property, "examples") ?? [];
  const description = text(property, "description");
  const variants = list(property, "oneOf");
  const says =
    description !== undefined &&
    (variants === undefined ? !hasVariants(property) : description !== text(variants[0] ?? null, "description"));
  const above = says ? `${indent}// ${description}\n` : "";
  const head =
    (title === undefined ? "" : `${indent}// ${title}\n${indent}//\n`) +
    (variants === undefined ? above : "") +
    (examples.length === 0 ? "" : `${indent}// Examples:\n`) +
    examples.map((each) => (textOf(each) === undefined ? "" : `${indent}// - "${textOf(each)}"\n`)).join("");
  if (variants !== undefined) return head + above + variantsText(name, property as Dict, variants, indent, says);
  const told = hasVariants(property) ? undefined : defaultText(property, false);
  return `${head}${indent}${name}: ${nullableText(property, `${indent}    `)},${told === undefined ? "" : ` // ${told}`}\n`;
}

/** `oneOf`, if only as something that is no list. */
const hasVariants = (property: Value): boolean => isDict(property) && property.has("oneOf");

function variantsText(name: string, property: Dict, variants: readonly Value[], indent: string, says: boolean): string {
  const byDefault = defaultText(property, false);
  const lines = variants.map((variant, at) => {
    const own = text(variant, "description");
    const description = (at === 0 && says) || own === text(property, "description") ? undefined : own;
    const told = [description, defaultText(variant, false)].filter((each) => each !== undefined);
    const type = nullableText(variant, `${indent}   `);
    return `${indent} | ${type}${told.length === 0 ? "" : ` // ${told.join(" ")}`}\n`;
  });
  return `${byDefault === undefined ? "" : `${indent}// ${byDefault}\n`}${indent}${name}:\n${lines.join("")}${indent},\n`;
}

/** @param quotes text is quoted even where it is one of an enumeration. */
function defaultText(schema: Value, quotes: boolean): string | undefined {
  const value = isDict(schema) ? schema.get("default") : undefined;
  if (value === undefined) return undefined;
  const word = textOf(value);
  if (word === undefined) return `default: ${compact(value)}`;
  const isEnum = (list(schema, "enum") ?? []).length > 0;
  return `default: ${isEnum ? (quotes ? JSON.stringify(word) : word) : `"${word}"`}`;
}

/** JSON as the Rust crate serde_json prints it. */
function compact(value: Value): string {
  if (isDict(value))
    return `{${Array.from(value, ([key, item]) => `${JSON.stringify(key)}:${compact(item)}`).join(",")}}`;
  if (isList(value)) return `[${value.map(compact).join(",")}]`;
  if (value instanceof PyFloat) return rustFloat(value.value);
  return isInt(value) ? intText(value) : JSON.stringify(value);
}

/** The shortest digits, with an exponent below 1e-5 and from 1e16 on. */
function rustFloat(value: number): string {
  const size = Math.abs(value);
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [digits = "", exponent = "0"] = value.toExponential().split("e");
  if (size >= 1e-5 && size < 1e16) return Number.isInteger(value) ? `${value}.0` : String(value);
  return `${digits}e${Number(exponent)}`;
}
