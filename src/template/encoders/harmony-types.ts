/** Functions as TypeScript, as the package openai-harmony declares them to gpt-oss. */

import { intText } from "../engine/numbers.ts";
import { type Dict, isDict, isInt, isList, PyFloat, textOf, type Value } from "../engine/values.ts";
import { refuse } from "./conversation.ts";
import { field, functionOf } from "./fields.ts";

const MAX_DEPTH = 100;

/** The section of the developer message that declares the functions. */
export function namespaceText(tools: readonly Value[]): string {
  const functions = tools.map(functionOf).map((declared) => {
    const name = textOf(field(declared, "name")) ?? refuse("A function must have a name", "tools");
    const comments = linesOf(textOf(field(declared, "description")) ?? "").map((line) => `// ${line}\n`);
    const parameters = field(declared, "parameters");
    const type = parameters === null ? "()" : `(_: ${typeText(parameters, "")})`;
    return `${comments.join("")}type ${name} = ${type} => any;\n\n`;
  });
  return `# Tools\n\n## functions\n\nnamespace functions {\n\n${functions.join("")}} // namespace functions`;
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
  const description = text(schema, "description");
  const properties = field(schema, "properties");
  const required = new Set(list(schema, "required"));
  const lines = Array.from(isDict(properties) ? properties : [], ([key, property]) =>
    propertyText(String(key) + (required.has(String(key)) ? "" : "?"), property, indent),
  );
  return `${description === undefined ? "" : `${indent}// ${description}\n`}{\n${lines.join("")}${indent}}`;
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
