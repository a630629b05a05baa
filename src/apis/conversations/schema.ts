/** Requests and objects of Conversations: shapes from OpenAI's published API document. */
import { type Static, type TSchema, Type as t } from "@sinclair/typebox";

const maybe = <S extends TSchema>(schema: S) => t.Optional(t.Union([schema, t.Null()]));
const MOST_ITEMS = 20;

const metadata = t.Record(t.String({ maxLength: 64 }), t.String({ maxLength: 512 }), { maxProperties: 16 });
const items = t.Array(t.Object({}, { additionalProperties: true }), {
  maxItems: MOST_ITEMS,
  description: "Items as in the input of Responses",
});

export const createConversationRequest = t.Object(
  { items: maybe(items), metadata: maybe(metadata) },
  { additionalProperties: true },
);
export type CreateConversationRequest = Static<typeof createConversationRequest>;

export const updateConversationRequest = t.Object(
  { metadata: t.Union([metadata, t.Null()]) },
  { additionalProperties: true },
);
export type UpdateConversationRequest = Static<typeof updateConversationRequest>;

export const addItemsRequest = t.Object({ items }, { additionalProperties: true });
export type AddItemsRequest = Static<typeof addItemsRequest>;

export const conversationObject = t.Object({
  id: t.String(),
  object: t.Literal("conversation"),
  created_at: t.Integer({ description: "Unix time in seconds" }),
  metadata: t.Record(t.String(), t.String()),
});

export const deletedConversation = t.Object({
  id: t.String(),
  object: t.Literal("conversation.deleted"),
  deleted: t.Literal(true),
});

export const conversationItem = t.Object({ id: t.String(), type: t.String() }, { additionalProperties: true });
