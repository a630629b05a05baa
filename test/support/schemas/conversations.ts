/** What OpenAI's published API document says of Conversations. Every object is closed, but for items. */
import { Type as t } from "@sinclair/typebox";

const closed = (properties: Parameters<typeof t.Object>[0]) => t.Object(properties, { additionalProperties: false });
const id = (prefix: string) => t.String({ pattern: `^${prefix}[0-9a-f]{50}$` });

export const conversation = closed({
  id: id("conv_"),
  object: t.Literal("conversation"),
  created_at: t.Integer({ minimum: 1_600_000_000, maximum: 4_000_000_000 }),
  metadata: t.Record(t.String(), t.String()),
});

export const deleted = closed({
  id: id("conv_"),
  object: t.Literal("conversation.deleted"),
  deleted: t.Literal(true),
});

export const item = t.Object({ id: t.String({ minLength: 1 }), type: t.String({ minLength: 1 }) });

export const itemList = closed({
  object: t.Literal("list"),
  data: t.Array(item),
  first_id: t.Union([t.String(), t.Null()]),
  last_id: t.Union([t.String(), t.Null()]),
  has_more: t.Boolean(),
});
