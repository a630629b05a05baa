type Schema = Readonly<Record<string, unknown>>;

/** Nesting at which optional parts are left out. */
const MAX_DEPTH = 8;

/** A small value that satisfies the usual parts of a JSON schema. */
export function instance(schema: unknown, root: unknown = schema, depth = 0): unknown {
  if (schema === true) return {};
  if (!isRecord(schema)) return "simulated";
  if (typeof schema["$ref"] === "string")
    return depth > MAX_DEPTH ? null : instance(resolve(root, schema["$ref"]), root, depth + 1);
  if ("const" in schema) return schema["const"];
  const alternatives = ["enum", "examples"].map((key) => schema[key]).find(isFilled);
  if (alternatives) return alternatives[0];
  const branches = ["anyOf", "oneOf"].map((key) => schema[key]).find(isFilled);
  if (branches) return instance(branches[0], root, depth + 1);
  if (isFilled(schema["allOf"])) return instance(Object.assign({}, ...schema["allOf"]), root, depth + 1);
  const type = Array.isArray(schema["type"]) ? schema["type"][0] : schema["type"];
  switch (type ?? ("properties" in schema ? "object" : "string")) {
    case "object":
      return objectInstance(schema, root, depth);
    case "array": {
      const count = depth > MAX_DEPTH ? 0 : Math.max(number(schema["minItems"], 1), 0);
      return Array.from({ length: count }, () => instance(schema["items"], root, depth + 1));
    }
    case "integer":
      return Math.ceil(number(schema["minimum"], number(schema["exclusiveMinimum"], 0) + 1));
    case "number":
      return number(schema["minimum"], number(schema["exclusiveMinimum"], 0) + 1);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return stringInstance(schema);
  }
}

function objectInstance(schema: Schema, root: unknown, depth: number): Record<string, unknown> {
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"] : Object.keys(properties);
  const out: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(properties))
    if (required.includes(name)) out[name] = instance(property, root, depth + 1);
  for (const name of required) if (typeof name === "string" && !(name in out)) out[name] = "simulated";
  return out;
}

const FORMATS: Readonly<Record<string, string>> = {
  date: "2026-01-31",
  "date-time": "2026-01-31T12:00:00Z",
  time: "12:00:00Z",
  email: "someone@example.com",
  uri: "https://example.com/",
  uuid: "00000000-0000-4000-8000-000000000000",
};

function stringInstance(schema: Schema): string {
  const text = (typeof schema["format"] === "string" ? FORMATS[schema["format"]] : undefined) ?? "simulated";
  return text
    .padEnd(number(schema["minLength"], 0), ".")
    .slice(0, number(schema["maxLength"], Number.POSITIVE_INFINITY));
}

function resolve(root: unknown, reference: string): unknown {
  let value: unknown = root;
  for (const part of reference.replace(/^#\/?/, "").split("/").filter(Boolean))
    value = isRecord(value) ? value[part.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
  return value;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isFilled(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.length > 0;
}

function number(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}
