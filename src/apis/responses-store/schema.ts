/** Requests and answers beside those of `POST /v1/responses`: shapes from OpenAI's published API document. */
import { type Static, Type as t } from "@sinclair/typebox";
import { promptFields, responseUsage } from "../responses/schema.ts";
import { maybe } from "../shared/sampling-fields.ts";

/** Request of `POST /v1/responses/input_tokens`. Without `model` the only one that is served is meant. */
export const countRequest = t.Object(
  { ...promptFields, model: maybe(promptFields.model) },
  { additionalProperties: true },
);
export type CountRequest = Static<typeof countRequest>;

export const countResponse = t.Object({ object: t.Literal("response.input_tokens"), input_tokens: t.Integer() });

const { model, input, instructions, previous_response_id } = promptFields;
/** Request of `POST /v1/responses/compact`. */
export const compactRequest = t.Object(
  { model, input, instructions, previous_response_id },
  { additionalProperties: true },
);
export type CompactRequest = Static<typeof compactRequest>;

const item = t.Object({ id: t.String(), type: t.String() }, { additionalProperties: true });

export const compactResponse = t.Object({
  id: t.String(),
  object: t.Literal("response.compaction"),
  created_at: t.Integer({ description: "Unix time in seconds" }),
  output: t.Array(item),
  usage: responseUsage,
});

export const itemList = t.Object({
  object: t.Literal("list"),
  data: t.Array(item),
  first_id: t.Union([t.String(), t.Null()]),
  last_id: t.Union([t.String(), t.Null()]),
  has_more: t.Boolean(),
});

export const deletedResponse = t.Object({
  id: t.String(),
  object: t.Literal("response"),
  deleted: t.Literal(true),
});
