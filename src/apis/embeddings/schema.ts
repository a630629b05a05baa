import { type Static, Type as t } from "@sinclair/typebox";
import { countField, inputField, poolingFields, poolingUsage } from "../pooling/schema.ts";
import { maybe } from "../shared/sampling-fields.ts";

/** Request of `POST /v1/embeddings`. Fields that are not listed are accepted and ignored. */
export const embeddingsRequest = t.Object(
  {
    model: t.String({ minLength: 1 }),
    input: inputField,
    encoding_format: maybe(
      t.Union([t.Literal("float"), t.Literal("base64")], {
        description: "base64: the numbers as little-endian 32-bit floats; float by default",
      }),
    ),
    dimensions: countField(1, "Numbers of a vector; only for models that are trained to be cut"),
    ...poolingFields,
    messages: t.Optional(t.Unknown()),
    normalize: maybe(t.Boolean({ description: "true: vectors of length 1, also where the engine's are not" })),
    embed_dtype: maybe(t.String()),
    endianness: maybe(t.String()),
    padding: maybe(t.String()),
  },
  { additionalProperties: true, description: "Fields that are not listed are accepted and ignored." },
);
export type EmbeddingsRequest = Static<typeof embeddingsRequest>;

/** Answer of `POST /v1/embeddings`. */
export const embeddingsResponse = t.Object({
  object: t.Literal("list"),
  data: t.Array(
    t.Object({
      object: t.Literal("embedding"),
      index: t.Integer(),
      embedding: t.Union([t.Array(t.Number()), t.String({ description: "with encoding_format base64" })]),
    }),
  ),
  model: t.String(),
  usage: poolingUsage,
});
