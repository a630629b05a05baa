/** What responses keep and go on from, in the store of the gateway. */
import { NotFoundError, PreconditionError, PreviousNotFoundError } from "../../errors.ts";
import { type HistoryStore, type StoredItem, UNFINISHED_STATUSES } from "../../history/store.ts";
import { newId } from "../shared/ids.ts";
import { conversationId } from "./object.ts";
import type { Loose, ResponsesRequest } from "./schema.ts";

/** What a request goes on from: one of the two, or nothing. */
export interface ContextAsk {
  readonly previousResponseId: string | undefined;
  readonly conversationId: string | undefined;
}

/** A response in its final state. */
export interface KeptResponse {
  readonly request: ResponsesRequest;
  readonly object: Loose;
  /** Its own input, each item with an id. */
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

/** Bounds on what is read for one request; a model's context is far smaller. */
const CHAIN_LIMITS = { maxTurns: 2000, maxBytes: 1 << 26 };
const ITEM_LIMITS = { maxItems: 5000, maxBytes: 1 << 26 };

const parsed = (json: string): Loose => JSON.parse(json) as Loose;

export function responseStore(history: HistoryStore): ResponseStore {
  return {
    async context({ previousResponseId, conversationId: conversation }, tenant) {
      if (previousResponseId !== undefined) return chainItems(history, tenant, previousResponseId);
      if (conversation === undefined) return [];
      const newest = await history.newestItems(tenant, conversation, ITEM_LIMITS);
      if (newest === null)
        throw new NotFoundError(`Conversation with id '${conversation.slice(0, 100)}' not found.`, {
          param: "conversation",
        });
      return newest.items.map(({ json }) => parsed(json));
    },
    async items(ids, tenant) {
      const found = ids.length === 0 ? [] : await history.findItems(tenant, ids);
      return new Map(found.map(({ id, json }) => [id, parsed(json)]));
    },
    async save(kept, tenant) {
      await history.putResponse(stored(kept, tenant));
    },
  };
}

async function chainItems(history: HistoryStore, tenant: string, id: string): Promise<Loose[]> {
  const chain = await history.readChain(tenant, id, CHAIN_LIMITS);
  const last = chain?.turns.at(-1);
  const param = "previous_response_id";
  if (chain === null || last?.kind !== "response")
    throw new PreviousNotFoundError(`Previous response with id '${id.slice(0, 100)}' not found.`, { param });
  if ((UNFINISHED_STATUSES as readonly string[]).includes(last.status))
    throw new PreconditionError(`The previous response is ${last.status}: it cannot be gone on from yet`, { param });
  return chain.turns.flatMap(({ input, output }) => [...input, ...output].map(parsed));
}

/** The row of a response, with the items that its conversation gets where it has come to an answer. */
function stored({ request, object, input }: KeptResponse, tenant: string): Parameters<HistoryStore["putResponse"]>[0] {
  const output = object["output"] as readonly Loose[];
  const status = String(object["status"]);
  const items = [...input, ...output].map(
    (item): StoredItem => ({ id: String(item["id"]), json: JSON.stringify(item) }),
  );
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

const ID_PREFIXES = {
  message: "msg_",
  reasoning: "rs_",
  custom_tool_call: "ctc_",
  custom_tool_call_output: "ctc_",
  compaction: "cmp_",
} as const;

/** The input of a request as items with ids, in the form in which lists show them. */
export function inputItems(input: ResponsesRequest["input"]): Loose[] {
  if (input === undefined || input === null) return [];
  if (typeof input === "string") return [messageItem({ role: "user", content: input })];
  return input.map((item: Loose) => {
    const { type = item["role"] === undefined ? undefined : "message", id } = item;
    if (type === "message") return messageItem(item);
    if (typeof id === "string" && id !== "") return item;
    return { ...item, id: newId(ID_PREFIXES[type as keyof typeof ID_PREFIXES] ?? "fc_") };
  });
}

function messageItem(item: Loose): Loose {
  const { id, role, content, status, ...rest } = item;
  const part = role === "assistant" ? { type: "output_text", annotations: [], logprobs: [] } : { type: "input_text" };
  return {
    ...rest,
    id: typeof id === "string" && id !== "" ? id : newId("msg_"),
    type: "message",
    status: status ?? "completed",
    role,
    content: typeof content === "string" ? [{ ...part, text: content }] : content,
  };
}
