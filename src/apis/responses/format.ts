/** The format that is asked of an answer: `text.format`, in the flat form of Responses. */
import type { Constraint } from "../../engines/engine.ts";
import { InvalidRequestError } from "../../errors.ts";
import { isObject } from "../shared/tools.ts";
import type { Loose } from "./schema.ts";

export interface AskedFormat {
  /** What the engine must enforce; undefined: any text. */
  readonly constraint: Constraint | undefined;
  /** The same in the form of Chat Completions, for templates. */
  readonly responseFormat: unknown;
}

const wrong = (param: string, message: string) => new InvalidRequestError(message, { param });

/**
 * Reads a format. `lossless`: the same by `parseLossless`, where the request's text is known. Throws InvalidRequestError.
 */
export function askedFormat(format: Loose | null | undefined, lossless?: unknown): AskedFormat | undefined {
  if (format === undefined || format === null) return undefined;
  const { type } = format;
  if (type === "text") return undefined;
  if (type === "json_object") return { constraint: { kind: "json_object" }, responseFormat: { type } };
  if (type !== "json_schema")
    throw wrong("text.format.type", "text.format.type must be text, json_object or json_schema");
  const { name, schema } = format;
  if (typeof name !== "string" || name === "")
    throw wrong("text.format.name", "text.format.name must be a non-empty string");
  if (!isObject(schema)) throw wrong("text.format.schema", "text.format.schema must be an object");
  return {
    constraint: { kind: "json_schema", schema: JSON.stringify(schema) },
    responseFormat: new Map<string, unknown>([
      ["type", type],
      ["json_schema", nested(format, lossless)],
    ]),
  };
}

function nested(format: Loose, lossless: unknown): unknown {
  const entries = lossless instanceof Map ? [...(lossless as Map<string, unknown>)] : Object.entries(format);
  return new Map(entries.filter(([key, value]) => key !== "type" && value !== null));
}
