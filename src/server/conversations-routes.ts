import { Elysia, type TSchema } from "elysia";
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
import { readJson } from "./body.ts";
import type { ServerContext } from "./context.ts";
import type { RequestScope } from "./request-scope.ts";

const json = (description: string, schema: TSchema) => ({ description, content: { "application/json": { schema } } });
const detail = (summary: string, answer: TSchema, description = "") => ({
  tags: ["OpenAI"],
  summary,
  description,
  responses: {
    200: json("The answer", answer),
    "4XX": json("The request is wrong", errorResponse),
    "5XX": json("It could not be served", errorResponse),
  },
});

/**
 * Routes of OpenAI's Conversations. `begin` gives the scope of a request, whose id begins with `kind`, and finishes it
 * if the request fails before it is handled.
 */
export function conversationsRoutes(context: ServerContext, begin: (request: Request, kind: string) => RequestScope) {
  const parse = ({ request }: { request: Request }) => {
    begin(request, "req");
    return readJson(request, context.config.maxPayloadSize);
  };
  async function during(request: Request, work: (call: ConversationsCall) => Promise<Response>): Promise<Response> {
    const scope = begin(request, "req");
    try {
      const headers = request.method === "POST" ? idHeaders("openai", scope.id) : {};
      return await work({ history: context.history, tenant: scope.tenant, headers });
    } finally {
      scope.finish();
    }
  }

  return new Elysia({ name: "collie-conversations", normalize: false })
    .post("/v1/conversations", ({ body, request }) => during(request, (call) => createConversation(body, call)), {
      parse,
      body: createConversationRequest,
      detail: detail("Create a conversation", conversationObject, "With up to 20 items, in the form of Responses."),
    })
    .get(
      "/v1/conversations/:id",
      ({ params, request }) => during(request, (call) => getConversation(params.id, call)),
      { detail: detail("Retrieve a conversation", conversationObject) },
    )
    .post(
      "/v1/conversations/:id",
      ({ body, params, request }) => during(request, (call) => updateConversation(params.id, body, call)),
      {
        parse,
        body: updateConversationRequest,
        detail: detail("Update a conversation", conversationObject, "The metadata takes the place of the former one."),
      },
    )
    .delete(
      "/v1/conversations/:id",
      ({ params, request }) => during(request, (call) => deleteConversation(params.id, call)),
      { detail: detail("Delete a conversation", deletedConversation, "Its items go with it.") },
    )
    .post(
      "/v1/conversations/:id/items",
      ({ body, params, request }) => during(request, (call) => addItems(params.id, body, call)),
      { parse, body: addItemsRequest, detail: detail("Add items", itemList, "Up to 20, to the end.") },
    )
    .get(
      "/v1/conversations/:id/items",
      ({ params, request }) => during(request, (call) => listItems(params.id, queryOf(request.url), call)),
      {
        detail: detail(
          "List items",
          itemList,
          "The newest first unless `order` is asc; `after`, `before` and `limit` choose among them.",
        ),
      },
    )
    .get(
      "/v1/conversations/:id/items/:item",
      ({ params, request }) => during(request, (call) => getItem(params.id, params.item, call)),
      { detail: detail("Retrieve an item", conversationItem) },
    )
    .delete(
      "/v1/conversations/:id/items/:item",
      ({ params, request }) => during(request, (call) => deleteItem(params.id, params.item, call)),
      { detail: detail("Delete an item", conversationObject, "Of this conversation; gives the conversation.") },
    );
}
