/** Constraints of the output that are not of a vendor's API. */
import { type Static, Type as t } from "@sinclair/typebox";
import type { Constraint } from "../../engines/engine.ts";
import { InvalidRequestError } from "../../errors.ts";
import { constraintFields } from "./sampling-fields.ts";

const bad = (param: string, message: string) => new InvalidRequestError(message, { param });

/** The text of a schema or tag that may come as JSON or as the text of it. */
export function jsonText(value: unknown, param: string): string {
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

/** vLLM's `structured_outputs`: one of json, regex, choice, grammar, json_object, structural_tag. */
export function structuredOutputs(value: Record<string, unknown>): Constraint[] {
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

export function choices(value: unknown, param: string): string[] {
  if (!Array.isArray(value) || value.length === 0 || !value.every((v) => typeof v === "string" && v !== "")) {
    throw bad(param, `${param} must be a list of non-empty strings`);
  }
  return value as string[];
}

const constrained = t.Object(constraintFields);
export type ConstraintFields = Static<typeof constrained>;

/** All constraints that the engines' own fields name. */
export function constraintExtensions(body: ConstraintFields): Constraint[] {
  const found: Constraint[] = [];
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
  return found;
}

/** The one constraint of a request; two are refused. `own`: the API's own field for it, in messages. */
export function onlyOne(found: readonly Constraint[], own: string): Constraint | undefined {
  if (found.length > 1)
    throw new InvalidRequestError(
      `Only one constraint on the output may be given: ${own}, structured_outputs, regex, ebnf, json_schema or guided_*`,
    );
  return found[0];
}
