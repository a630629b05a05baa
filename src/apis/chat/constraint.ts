import type { Constraint } from "../../engines/engine.ts";
import { InvalidRequestError } from "../../errors.ts";
import type { ChatRequest } from "./schema.ts";

const bad = (param: string, message: string) => new InvalidRequestError(message, { param });

/** The text of a schema or tag that may come as JSON or as the text of it. */
function jsonText(value: unknown, param: string): string {
  let parsed = value;
  if (typeof value === "string") {
    try {
      parsed = JSON.parse(value);
    } catch {
      throw bad(param, `${param} is not valid JSON`);
    }
  }
  if (typeof parsed !== "boolean" && (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)))
    throw bad(param, `${param} must be a JSON object`);
  return typeof value === "string" ? value : JSON.stringify(value);
}

function responseFormat(format: NonNullable<ChatRequest["response_format"]>): Constraint | undefined {
  const extra = format as Record<string, unknown>;
  switch (format.type) {
    case "text":
      return undefined;
    case "json_object":
      return { kind: "json_object" };
    case "json_schema": {
      const wrapper = extra["json_schema"];
      if (typeof wrapper !== "object" || wrapper === null)
        throw bad("response_format.json_schema", "response_format.json_schema must be an object");
      const { name, schema } = wrapper as { name?: unknown; schema?: unknown };
      if (typeof name !== "string" || name === "")
        throw bad("response_format.json_schema.name", "response_format.json_schema.name must be a non-empty string");
      if (schema === undefined || schema === null) return { kind: "json_object" };
      if (typeof schema !== "object" && typeof schema !== "boolean")
        throw bad("response_format.json_schema.schema", "response_format.json_schema.schema must be an object");
      return { kind: "json_schema", schema: JSON.stringify(schema) };
    }
    case "structural_tag": {
      const { type: _, ...rest } = extra;
      return {
        kind: "structural_tag",
        tag: JSON.stringify("format" in rest ? { type: "structural_tag", ...rest } : extra),
      };
    }
    default:
      throw bad(
        "response_format.type",
        `response_format.type must be text, json_object, json_schema or structural_tag, not '${format.type.slice(0, 40)}'`,
      );
  }
}

/** vLLM's `structured_outputs`: one of json, regex, choice, grammar, json_object, structural_tag. */
function structuredOutputs(value: Record<string, unknown>): Constraint[] {
  const found: Constraint[] = [];
  const text = (key: string): string => {
    const v = value[key];
    if (typeof v !== "string" || v === "")
      throw bad(`structured_outputs.${key}`, `structured_outputs.${key} must be a non-empty string`);
    return v;
  };
  for (const key of Object.keys(value)) {
    if (value[key] === null || value[key] === undefined) continue;
    const param = `structured_outputs.${key}`;
    if (key === "json") found.push({ kind: "json_schema", schema: jsonText(value[key], param) });
    else if (key === "json_object") {
      if (value[key] === true) found.push({ kind: "json_object" });
    } else if (key === "regex") found.push({ kind: "regex", pattern: text(key) });
    else if (key === "grammar") found.push({ kind: "grammar", grammar: text(key) });
    else if (key === "structural_tag") found.push({ kind: "structural_tag", tag: jsonText(value[key], param) });
    else if (key === "choice") found.push({ kind: "choice", choices: choices(value[key], param) });
  }
  if (found.length === 0 && value["json_object"] !== false)
    throw bad("structured_outputs", "structured_outputs names no constraint that is known");
  return found;
}

function choices(value: unknown, param: string): string[] {
  if (!Array.isArray(value) || value.length === 0 || !value.every((v) => typeof v === "string" && v !== "")) {
    throw bad(param, `${param} must be a list of non-empty strings`);
  }
  return value as string[];
}

/** The one constraint of a request, from whichever of the accepted fields; two of them are refused. */
export function chatConstraint(body: ChatRequest): Constraint | undefined {
  const found: Constraint[] = [];
  if (body.response_format) {
    const constraint = responseFormat(body.response_format);
    if (constraint) found.push(constraint);
  }
  if (body.structured_outputs) found.push(...structuredOutputs(body.structured_outputs));
  for (const param of ["json_schema", "guided_json"] as const) {
    const schema = body[param];
    if (schema !== undefined && schema !== null) found.push({ kind: "json_schema", schema: jsonText(schema, param) });
  }
  if (body.regex) found.push({ kind: "regex", pattern: body.regex });
  if (body.ebnf) found.push({ kind: "grammar", grammar: body.ebnf });
  if (body.guided_regex) found.push({ kind: "regex", pattern: body.guided_regex });
  if (body.guided_choice) found.push({ kind: "choice", choices: choices(body.guided_choice, "guided_choice") });
  if (body.guided_grammar) found.push({ kind: "grammar", grammar: body.guided_grammar });
  if (found.length > 1)
    throw new InvalidRequestError(
      "Only one constraint on the output may be given: response_format, structured_outputs, regex, ebnf, json_schema or guided_*",
    );
  return found[0];
}
