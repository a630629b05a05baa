import type { Static, TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { invalidBody, type SchemaProblem } from "../server/validation.ts";

/** A value that fits the schema. Throws the InvalidRequestError that the server would answer with. */
export function checkedLine<S extends TSchema>(schema: S, value: object): Static<S> {
  if (Value.Check(schema, value)) return value;
  throw invalidBody(Value.Errors(schema, value) as Iterable<unknown> as Iterable<SchemaProblem>);
}
