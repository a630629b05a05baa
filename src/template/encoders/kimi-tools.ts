/**
 * Kimi K2.5: tools as TypeScript, a variable of the model's chat template that its host computes. The format is that of the model's
 * published `tool_declaration_ts.py`.
 */
import { compareTexts } from "../engine/dict.ts";
import { refill } from "../engine/limits.ts";
import { str } from "../engine/text.ts";
import { type Dict, isDict, isInt, isList, isNumber, PyFloat, textOf, truthy, type Value } from "../engine/values.ts";
import { ChatTemplateError } from "../errors.ts";
import { plainValue } from "../plain-value.ts";
import { field, json } from "./fields.ts";

/** A schema that the published code fails on, too: the template then prints the tools as JSON. */
class OddSchemaError extends Error {}
const odd = (): never => {
  throw new OddSchemaError();
};

const MAX_DEPTH = 100;
const INDENT = "  ";
const COMMA = ",\n";

/** A parsed schema. */
interface Shape {
  /** What is said above it: description and limits, each line with its end. */
  comments(indent: string): string;
  text(indent: string): string;
}

interface Property {
  readonly name: string;
  readonly shape: Shape;
  readonly optional: boolean;
  readonly default: Value;
}

interface ObjectShape extends Shape {
  readonly properties: readonly Property[];
}

/** What is declared under `$defs` so far, and whether a schema refers to the function's own parameters. */
interface Registry {
  readonly definitions: Map<string, Value>;
  selfReference: boolean;
  depth: number;
}

/** Values with the keys of all objects sorted: how Kimi's tokenizers hand tools to their templates. */
export function sortedKeys(value: Value): Value {
  if (isList(value)) return value.map(sortedKeys);
  if (!isDict(value)) return value;
  const entries = Array.from(value, ([key, item]) => [String(key), sortedKeys(item)] as const);
  return new Map(entries.sort(([a], [b]) => compareTexts(a, b)));
}

/**
 * The variable `tools_ts_str`; undefined (then the variable stays undefined) when there is no function, or a schema that has no such form.
 * The same template gets `tools` with sorted keys (`sortedKeys`).
 * @param tools the request's tools, plain data or what `parseLossless` gives.
 */
export function kimiToolsText(tools: readonly unknown[]): string | undefined {
  refill();
  try {
    const values = sortedKeys(plainValue(tools)) as readonly Value[];
    const functions = values.flatMap((tool) => {
      const declared = isDict(tool) && tool.get("type") === "function" ? field(tool, "function") : null;
      return isDict(declared) && declared.size > 0 ? [functionText(declared)] : [];
    });
    if (functions.length === 0) return undefined;
    return `# Tools\n\n## functions\nnamespace functions {\n${functions.join("\n")}\n}\n`;
  } catch (error) {
    if (error instanceof OddSchemaError || error instanceof ChatTemplateError) return undefined;
    throw error;
  }
}

function functionText(declared: Dict): string {
  const registry: Registry = { definitions: new Map(), selfReference: false, depth: 0 };
  const given = field(declared, "parameters");
  const parameters = objectShape(truthy(given) ? dictOf(given) : new Map(), registry);
  const lines: string[] = [];
  // decided before the definitions are parsed: a reference from one of them to the parameters has no interface
  const root = registry.selfReference;
  if (root) {
    const properties = parameters.properties.map((property) => propertyText(property, INDENT)).join(COMMA);
    lines.push(`interface parameters {${properties === "" ? "" : `\n${properties}\n`}}`);
  }
  for (const [name, schema] of [...registry.definitions]) {
    const text = shapeOf(schema, registry).text("");
    const description = field(dictOf(schema), "description");
    const comment = truthy(description) ? `${commentText(description, "")}\n` : "";
    lines.push(`${comment}interface ${name} ${text}`);
  }
  const description = field(declared, "description");
  if (truthy(description)) lines.push(commentText(description, ""));
  const name = str(declared.get("name") ?? (declared.has("name") ? null : "function"));
  lines.push(`type ${name} = (_: ${root ? "parameters" : parameters.text("")}) => any;`);
  return lines.filter((line) => line !== "").join("\n");
}

const dictOf = (value: Value): Dict => (isDict(value) ? value : odd());

const commentText = (description: Value, indent: string): string =>
  (textOf(description) ?? odd())
    .split("\n")
    .map((line) => (line === "" ? "" : `${indent}// ${line}`))
    .join("\n");

/** @param limits keys that are told, in the order of the output. */
function comments(schema: Dict, limits: readonly string[] = []): (indent: string) => string {
  const description = field(schema, "description");
  const told = limits.filter((key) => schema.has(key)).map((key) => `${key}: ${str(field(schema, key))}`);
  return (indent) =>
    (truthy(description) ? `${commentText(description, indent)}\n` : "") +
    (told.length === 0 ? "" : `${indent}// ${told.join(", ")}\n`);
}

const NONE: Dict = new Map();
const scalar = (type: string, schema: Dict = NONE, limits: readonly string[] = []): Shape => ({
  comments: comments(schema, limits),
  text: () => type,
});

function shapeOf(schema: Value, registry: Registry): Shape {
  if (registry.depth >= MAX_DEPTH) odd();
  registry.depth++;
  const shape = parse(schema, registry);
  registry.depth--;
  return shape;
}

function parse(given: Value, registry: Registry): Shape {
  if (typeof given === "boolean") return scalar(given ? "any" : "null");
  const schema = dictOf(given);
  if (schema.has("$ref")) return reference(schema, registry);
  if (schema.has("anyOf")) {
    const shapes = listOf(field(schema, "anyOf")).map((each) => shapeOf(each, registry));
    return { comments: comments(schema), text: (indent) => shapes.map((each) => each.text(indent)).join(" | ") };
  }
  if (schema.has("enum")) return enumeration(schema);
  if (!schema.has("type")) return schema.size === 0 ? scalar("any") : odd();
  const type = field(schema, "type");
  if (isList(type)) return scalar(type.map((each) => UNION[textOf(each) ?? ""] ?? odd()).join(" | "), schema);
  switch (type) {
    case "object":
      return objectShape(schema, registry);
    case "array":
      return arrayShape(schema, registry);
    case "string":
      return scalar(type, schema, ["maxLength", "minLength", "pattern"]);
    case "number":
    case "integer":
      return scalar("number", schema, ["maximum", "minimum"]);
  }
  return scalar(textOf(type) ?? odd(), schema);
}

const UNION: Readonly<Record<string, string>> = {
  string: "string",
  number: "number",
  integer: "number",
  boolean: "boolean",
  null: "null",
  object: "{}",
  array: "Array<any>",
};

const listOf = (value: Value): readonly Value[] => (isList(value) ? value : odd());

const DEFINITIONS = "#/$defs/";

function reference(schema: Dict, registry: Registry): Shape {
  const path = textOf(field(schema, "$ref")) ?? odd();
  if (path === "#") {
    registry.selfReference = true;
    return scalar("parameters", schema);
  }
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (!path.startsWith(DEFINITIONS) || !isDict(registry.definitions.get(name) ?? null)) odd();
  return scalar(name, schema);
}

/** Kinds of values that a type allows in an enumeration; other types allow all. */
const ALLOWED: Readonly<Record<string, (value: Value) => boolean>> = {
  string: (value) => textOf(value) !== undefined,
  number: isNumber,
  integer: (value) => isInt(value) || typeof value === "boolean",
  boolean: (value) => typeof value === "boolean",
};

function enumeration(schema: Dict): Shape {
  const values = listOf(field(schema, "enum"));
  const allowed = schema.has("type") ? ALLOWED[str(enumType(field(schema, "type")))] : undefined;
  if (allowed !== undefined && !values.every((value) => value === null || allowed(value))) odd();
  return scalar(values.map((value) => (typeof value === "string" ? `"${value}"` : str(value))).join(" | "), schema);
}

/** One type, or one and null. */
function enumType(type: Value): Value {
  if (!isList(type)) return type;
  const [first = null, second = null] = type;
  if (type.length === 1) return first;
  if (type.length !== 2 || !type.includes("null")) return odd();
  return first === "null" ? second : first;
}

function arrayShape(schema: Dict, registry: Registry): Shape {
  const items = field(schema, "items");
  const item = truthy(items) ? shapeOf(items, registry) : scalar("any");
  return {
    comments: comments(schema, ["maxItems", "minItems"]),
    text(indent) {
      const inner = indent + INDENT;
      const told = item.comments(inner);
      return told === "" ? `Array<${item.text(indent)}>` : `Array<\n${told}${inner}${item.text(inner)}\n${indent}>`;
    },
  };
}

function objectShape(schema: Dict, registry: Registry): ObjectShape {
  if (schema.has("$defs")) {
    const definitions = field(schema, "$defs");
    if (truthy(definitions))
      for (const [name, each] of dictOf(definitions)) registry.definitions.set(String(name), each);
  }
  const others = field(schema, "additionalProperties");
  const rest = isDict(others) ? shapeOf(others, registry) : undefined;
  const required = new Set(schema.has("properties") && schema.has("required") ? listOf(field(schema, "required")) : []);
  const properties = schema.has("properties")
    ? Array.from(dictOf(field(schema, "properties")), ([key, property]) => ({
        name: String(key),
        shape: shapeOf(property, registry),
        optional: !required.has(String(key)),
        default: isDict(property) ? field(property, "default") : null,
      }))
    : [];
  const sorted = properties.toSorted((a, b) => Number(a.optional) - Number(b.optional) || compareTexts(a.name, b.name));
  return {
    properties,
    comments: comments(schema),
    text(indent) {
      const inner = indent + INDENT;
      const lines = sorted.map((property) => propertyText(property, inner));
      if (others !== null) lines.push(`${inner}[k: string]: ${rest?.text(inner) ?? restText(others)}`);
      return lines.length === 0 ? "{}" : `{\n${lines.join(COMMA)}\n${indent}}`;
    },
  };
}

const restText = (others: Value): string => (typeof others === "boolean" ? (others ? "any" : "never") : odd());

function propertyText({ name, shape, optional, default: value }: Property, indent: string): string {
  const isNumeric = isInt(value) || value instanceof PyFloat || typeof value === "boolean";
  const told = value === null ? "" : `${indent}// Default: ${isNumeric ? str(value) : json(value)}\n`;
  return `${shape.comments(indent)}${told}${indent}${name}${optional ? "?" : ""}: ${shape.text(indent)}`;
}
