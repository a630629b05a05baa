import type { Constraint } from "../../engines/engine.ts";
import { InvalidRequestError } from "../../errors.ts";
import { type ConstraintFields, constraintExtensions, onlyOne } from "../shared/constraint.ts";
import type { ChatRequest } from "./schema.ts";

const bad = (param: string, message: string) => new InvalidRequestError(message, { param });

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

/** The one constraint of a request, from whichever of the accepted fields; two of them are refused. */
export function chatConstraint(body: ConstraintFields & Pick<ChatRequest, "response_format">): Constraint | undefined {
  const own = body.response_format ? responseFormat(body.response_format) : undefined;
  const others = constraintExtensions(body);
  return onlyOne(own === undefined ? others : [own, ...others], "response_format");
}
