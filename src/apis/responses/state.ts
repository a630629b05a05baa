/** What responses keep and go on from, in the store of the gateway. */
import type { HistoryStore, NewResponse, StoredItem } from "../../history/store.ts";
import { atOnce, inTurns, PIECE_ITEMS, type Steps } from "../../steps.ts";
import { type ContextAsk, loadContext } from "../shared/history.ts";
import { type IdPrefix, newId } from "../shared/ids.ts";
import { conversationId } from "./object.ts";
import type { Loose, ResponsesRequest } from "./schema.ts";
import { pairsById } from "./trace.ts";

/** A response in its final state. */
export interface KeptResponse {
  readonly request: ResponsesRequest;
  readonly object: Loose;
  /** Its own input, each item with an id of ours. */
  readonly input: readonly Loose[];
}

export interface ResponseStore {
  /** The items that come before a request's own, oldest first. Throws GatewayErrors: where there is no such response or conversation. */
  context(ask: ContextAsk, tenant: string): Promise<readonly Loose[]>;
  /** Items by id; those that are not there are left out. */
  items(ids: readonly string[], tenant: string): Promise<ReadonlyMap<string, Loose>>;
  /** With its conversation's new items, all or nothing. */
  save(kept: KeptResponse, tenant: string): Promise<void>;
}

const parsed = (json: string): Loose => JSON.parse(json) as Loose;

export function responseStore(history: HistoryStore): ResponseStore {
  return {
    context: (ask, tenant) => loadContext(history, ask, tenant),
    async items(ids, tenant) {
      const found = ids.length === 0 ? [] : await history.findItems(tenant, ids);
      return new Map(found.map(({ id, json }) => [id, parsed(json)]));
    },
    async save(kept, tenant) {
      await history.putResponse(await inTurns(stored(kept, tenant)));
    },
  };
}

/** The row of a response, with the items that its conversation gets where it has come to an answer. */
export function* stored({ request, object, input }: KeptResponse, tenant: string): Steps<NewResponse> {
  const output = object["output"] as readonly Loose[];
  const status = String(object["status"]);
  const items: StoredItem[] = [];
  for (const list of [input, output])
    for (const item of list) {
      if (items.length % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
      items.push({ id: String(item["id"]), json: JSON.stringify(item) });
    }
  const conversation = conversationId(request);
  const answers = status === "completed" || status === "incomplete";
  return {
    tenant,
    id: String(object["id"]),
    kind: "response",
    createdAt: Number(object["created_at"]) * 1000,
    previousId: request.previous_response_id ?? null,
    conversationId: conversation ?? null,
    model: request.model,
    safetyIdentifier: request.safety_identifier ?? null,
    status,
    body: JSON.stringify(object),
    input: items.slice(0, input.length).map(({ json }) => json),
    output: items.slice(input.length).map(({ json }) => json),
    itemIds: [...new Set(items.map(({ id }) => id))],
    ...(conversation !== undefined && answers && { conversationItems: items }),
  };
}

const ID_PREFIXES: ReadonlyMap<unknown, IdPrefix> = new Map([
  ["reasoning", "rs_"],
  ["function_call", "fc_"],
  ["function_call_output", "fc_"],
  ["custom_tool_call", "ctc_"],
  ["custom_tool_call_output", "ctc_"],
  ["compaction", "cmp_"],
]);

const NONE: ReadonlySet<Loose> = new Set();

/**
 * The input of a request as items with ids, in the form in which lists show them. Ids are ours: two clients that choose the same id shall
 * not share an item. Only `kept` ones, which came from the store in the place of references, have theirs already.
 */
export const inputItems = (input: ResponsesRequest["input"], kept: ReadonlySet<Loose> = NONE): Loose[] =>
  atOnce(inputItemsSteps(input, kept));

/** The same in steps. */
export function* inputItemsSteps(input: ResponsesRequest["input"], kept: ReadonlySet<Loose>): Steps<Loose[]> {
  if (input === undefined || input === null) return [];
  if (typeof input === "string") return [messageItem({ role: "user", content: input })];
  const items: Loose[] = [];
  for (const item of input) {
    if (items.length % PIECE_ITEMS === PIECE_ITEMS - 1) yield;
    items.push(kept.has(item) ? item : newItem(item));
  }
  return items;
}

function newItem(item: Loose): Loose {
  const type = item["type"] ?? (item["role"] === undefined ? undefined : "message");
  if (type === "message") return messageItem(item);
  const { id, call_id: call } = item;
  // a call that has no other id is what its result names
  const named = typeof id === "string" && typeof call !== "string" && pairsById(type) ? { call_id: id } : {};
  return { ...item, id: newId(ID_PREFIXES.get(type) ?? "item_"), ...named };
}

function messageItem(item: Loose): Loose {
  const { id: _theirs, role, content, status, ...rest } = item;
  const part = role === "assistant" ? { type: "output_text", annotations: [], logprobs: [] } : { type: "input_text" };
  return {
    ...rest,
    id: newId("msg_"),
    type: "message",
    status: status ?? "completed",
    role,
    content: typeof content === "string" ? [{ ...part, text: content }] : content,
  };
}
