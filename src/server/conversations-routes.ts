import type { TSchema } from "@sinclair/typebox";
import { Elysia } from "elysia";
import {
  addItems,
  type ConversationsCall,
  createConversation,
  deleteConversation,
  deleteItem,
  getConversation,
  getItem,
  listItems,
  updateConversation,
} from "../apis/conversations/handle.ts";
import {
  addItemsRequest,
  conversationItem,
  conversationObject,
  createConversationRequest,
  deletedConversation,
  updateConversationRequest,
} from "../apis/conversations/schema.ts";
import { idHeaders } from "../apis/errors.ts";
import { errorResponse } from "../apis/openai/errors.ts";
import { itemList } from "../apis/responses-store/schema.ts";
import { queryOf } from "../apis/shared/paging.ts";
import type { ServerContext } from "./context.ts";
import { type Begin, jsonBody, routeDetail, withinScope } from "./route-parts.ts";

const detail = routeDetail("OpenAI", errorResponse);

/** Routes of OpenAI's Conversations. */
export function conversationsRoutes(context: ServerContext, begin: Begin) {
  const parse = (schema: TSchema) => jsonBody(begin, "req", context, schema);
  const within = withinScope(begin, "req");
  const during = (request: Request, work: (call: ConversationsCall) => Promise<Response>): Promise<Response> =>
    within(request, ({ id, tenant }) => {
      const headers = request.method === "POST" ? idHeaders("openai", id) : {};
      return work({ history: context.history, tenant, headers });
    });

  return new Elysia({ name: "collie-conversations", normalize: false })
    .post("/v1/conversations", ({ body, request }) => during(request, (call) => createConversation(body, call)), {
      parse: jsonBody(begin, "req", context, createConversationRequest, true),
      body: createConversationRequest,
      detail: detail("Create a conversation", "With up to 20 items, in the form of Responses.", conversationObject),
    })
    .get(
      "/v1/conversations/:id",
      ({ params, request }) => during(request, (call) => getConversation(params.id, call)),
      { detail: detail("Retrieve a conversation", "", conversationObject) },
    )
    .post(
      "/v1/conversations/:id",
      ({ body, params, request }) => during(request, (call) => updateConversation(params.id, body, call)),
      {
        parse: parse(updateConversationRequest),
        body: updateConversationRequest,
        detail: detail("Update a conversation", "The metadata takes the place of the former one.", conversationObject),
      },
    )
    .delete(
      "/v1/conversations/:id",
      ({ params, request }) => during(request, (call) => deleteConversation(params.id, call)),
      { detail: detail("Delete a conversation", "Its items go with it.", deletedConversation) },
    )
    .post(
      "/v1/conversations/:id/items",
      ({ body, params, request }) => during(request, (call) => addItems(params.id, body, call)),
      {
        parse: parse(addItemsRequest),
        body: addItemsRequest,
        detail: detail("Add items", "Up to 20, to the end.", itemList),
      },
    )
    .get(
      "/v1/conversations/:id/items",
      ({ params, request }) => during(request, (call) => listItems(params.id, queryOf(request.url), call)),
      {
        detail: detail(
          "List items",
          "The newest first unless `order` is asc; `after`, `before` and `limit` choose among them.",
          itemList,
        ),
      },
    )
    .get(
      "/v1/conversations/:id/items/:item",
      ({ params, request }) => during(request, (call) => getItem(params.id, params.item, call)),
      { detail: detail("Retrieve an item", "", conversationItem) },
    )
    .delete(
      "/v1/conversations/:id/items/:item",
      ({ params, request }) => during(request, (call) => deleteItem(params.id, params.item, call)),
      { detail: detail("Delete an item", "Of this conversation; gives the conversation.", conversationObject) },
    );
}
