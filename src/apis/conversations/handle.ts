/** Conversations: kept lists of items, which responses go on from and add to. */
import { NotFoundError, UnsupportedError } from "../../errors.ts";
import type { Conversation, HistoryStore, StoredItem } from "../../history/store.ts";
import { askedConversation } from "../responses/ask.ts";
import { isReference } from "../responses/input.ts";
import type { Loose } from "../responses/schema.ts";
import { inputItems } from "../responses/state.ts";
import { noConversation } from "../shared/history.ts";
import { newId } from "../shared/ids.ts";
import { jsonResponse, listResponse, pageRequest } from "../shared/paging.ts";
import type { AddItemsRequest, CreateConversationRequest, UpdateConversationRequest } from "./schema.ts";

/** What a call works on, and the headers of its answer. */
export interface ConversationsCall {
  readonly history: HistoryStore | null;
  readonly tenant: string;
  readonly headers: Record<string, string>;
}

function shown({ id, createdAt, metadata }: Conversation, headers: Record<string, string>): Response {
  const created = Math.floor(createdAt / 1000);
  return jsonResponse(
    `{"id":${JSON.stringify(id)},"object":"conversation","created_at":${created},"metadata":${metadata}}`,
    headers,
  );
}

/**
 * Items as they are kept: each with an id, and in the form in which lists show it. What no response could go on from is refused. Throws
 * InvalidRequestErrors.
 */
function storedItems(given: readonly Loose[]): StoredItem[] {
  for (const [i, item] of given.entries()) {
    const at = `items[${i}]`;
    if (isReference(item))
      throw new UnsupportedError(`${at}: a conversation keeps items, not references`, { param: at });
  }
  askedConversation({ model: "" }, { context: [], items: given, at: "items", raw: undefined, open: () => undefined });
  return inputItems([...given]).map((item) => ({ id: String(item["id"]), json: JSON.stringify(item) }));
}

/** `POST /v1/conversations`. Throws GatewayErrors, as all of these do. */
export async function createConversation(
  { items, metadata }: CreateConversationRequest,
  { history, tenant, headers }: ConversationsCall,
): Promise<Response> {
  if (history === null) throw new UnsupportedError("This server keeps no conversations");
  const made: Conversation = {
    tenant,
    id: newId("conv_"),
    createdAt: Date.now(),
    metadata: JSON.stringify(metadata ?? {}),
  };
  await history.createConversation(made, storedItems(items ?? []));
  return shown(made, headers);
}

/** `GET /v1/conversations/{id}`. */
export async function getConversation(id: string, { history, tenant, headers }: ConversationsCall): Promise<Response> {
  return shown(found(await history?.getConversation(tenant, id), id), headers);
}

function found<T>(value: T | null | undefined | false, id: string): T {
  if (value === null || value === undefined || value === false) throw noConversation(id);
  return value;
}

/** `POST /v1/conversations/{id}`: other metadata. */
export async function updateConversation(
  id: string,
  { metadata }: UpdateConversationRequest,
  { history, tenant, headers }: ConversationsCall,
): Promise<Response> {
  const text = JSON.stringify(metadata ?? {});
  return shown(found(await history?.updateConversation(tenant, id, text, Date.now()), id), headers);
}

/** `DELETE /v1/conversations/{id}`: with its items. */
export async function deleteConversation(
  id: string,
  { history, tenant, headers }: ConversationsCall,
): Promise<Response> {
  found(await history?.deleteConversation(tenant, id), id);
  return Response.json({ id, object: "conversation.deleted", deleted: true }, { headers });
}

/** `POST /v1/conversations/{id}/items`. */
export async function addItems(
  id: string,
  { items }: AddItemsRequest,
  { history, tenant, headers }: ConversationsCall,
): Promise<Response> {
  const added = storedItems(items);
  found(await history?.addItems(tenant, id, added, Date.now()), id);
  return listResponse({ data: added, hasMore: false }, headers);
}

/** `GET /v1/conversations/{id}/items`. */
export async function listItems(
  id: string,
  query: URLSearchParams,
  { history, tenant, headers }: ConversationsCall,
): Promise<Response> {
  return listResponse(found(await history?.listItems(tenant, id, pageRequest(query)), id), headers);
}

const noItem = (id: string): NotFoundError => new NotFoundError(`Item with id '${id.slice(0, 100)}' not found.`);

/** `GET /v1/conversations/{id}/items/{item}`. */
export async function getItem(
  id: string,
  itemId: string,
  { history, tenant, headers }: ConversationsCall,
): Promise<Response> {
  found(await history?.getConversation(tenant, id), id);
  const item = await history?.getItem(tenant, id, itemId);
  if (!item) throw noItem(itemId);
  return jsonResponse(item.json, headers);
}

/** `DELETE /v1/conversations/{id}/items/{item}`: gives the conversation. */
export async function deleteItem(
  id: string,
  itemId: string,
  { history, tenant, headers }: ConversationsCall,
): Promise<Response> {
  const conversation = found(await history?.getConversation(tenant, id), id);
  if (!(await history?.removeItem(tenant, id, itemId))) throw noItem(itemId);
  return shown(conversation, headers);
}
