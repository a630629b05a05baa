import { type Static, Type as t } from "@sinclair/typebox";
import { maybe } from "../shared/sampling-fields.ts";

/** A whole number of at least `minimum`, as a field. */
export const countField = (minimum: number, description: string) =>
  maybe(t.Integer({ minimum, maximum: 2 ** 31 - 1, description }));

const ids = { type: "array", items: { type: "integer", minimum: 0 }, minItems: 1 };

/** Texts of a request; looked at by `poolingInputs`. */
export const inputField = t.Optional(
  t.Any({
    description: "A text, texts, token ids, or lists of token ids",
    anyOf: [
      { type: "string", minLength: 1 },
      { type: "array", items: { type: "string", minLength: 1 }, minItems: 1 },
      ids,
      { type: "array", items: ids, minItems: 1 },
    ],
  }),
);

/** What all requests for vectors may say: extensions of vLLM and SGLang. */
export const poolingFields = {
  user: maybe(t.String()),
  truncate_prompt_tokens: countField(
    -1,
    "Longer inputs are cut to this number of tokens instead of being refused; -1: to the model's context",
  ),
  truncation_side: maybe(
    t.Union([t.Literal("left"), t.Literal("right")], {
      description: "The end that is cut off; by default the end of the text, between the special tokens",
    }),
  ),
  add_special_tokens: maybe(t.Boolean({ description: "Put the model's special tokens around texts; true by default" })),
  use_activation: maybe(
    t.Boolean({ description: "false, for classify only: the engine's numbers, not probabilities" }),
  ),
  rid: maybe(t.String({ maxLength: 128 })),
  request_id: maybe(t.String({ maxLength: 128 })),
} as const;
const options = t.Object(poolingFields);
export type PoolingOptions = Static<typeof options>;

export const poolingUsage = t.Object({ prompt_tokens: t.Integer(), total_tokens: t.Integer() });
