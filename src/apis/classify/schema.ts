import { type Static, Type as t } from "@sinclair/typebox";
import { inputField, poolingFields, poolingUsage } from "../pooling/schema.ts";

/** Request of `POST /v1/classify`. */
export const classifyRequest = t.Object(
  {
    model: t.String({ minLength: 1 }),
    input: inputField,
    ...poolingFields,
  },
  { additionalProperties: true, description: "Fields that are not listed are accepted and ignored." },
);
export type ClassifyRequest = Static<typeof classifyRequest>;

/** Answer of `POST /v1/classify`. */
export const classifyResponse = t.Object({
  id: t.String(),
  object: t.Literal("list"),
  created: t.Integer({ description: "Unix time in seconds" }),
  model: t.String(),
  data: t.Array(
    t.Object({
      index: t.Integer(),
      label: t.String({ description: "The most probable one" }),
      probs: t.Array(t.Number(), { description: "Of each label, in the model's order" }),
      num_classes: t.Integer(),
    }),
  ),
  usage: poolingUsage,
});
