/** The store in memory: for trying out, and what the others are compared with. The oldest goes when it gets too large. */
import { type ChainLink, chainOf } from "./chain.ts";
import { HistoryConflictError, UnknownCursorError } from "./errors.ts";
import { eventsIn, joinEvents } from "./event-text.ts";
import type { SyncHistory } from "./host.ts";
import { idOf } from "./json-text.ts";
import { createMemoryConversations } from "./memory-conversations.ts";
import { memoryKey } from "./memory-key.ts";
import { pageOf } from "./page.ts";
import { stateOf, turnBytes } from "./rows.ts";
import type { NewResponse, StoredItem, StoredResponse, SyncStore } from "./store.ts";
import { UNFINISHED_STATUSES } from "./store.ts";

export interface MemoryLimits {
  /** Responses and conversations together. */
  readonly maxEntries: number;
  /** Of their texts, two bytes a character. */
  readonly maxBytes: number;
}

interface Entry {
  response: StoredResponse;
  itemIds: Set<string>;
  updatedAt: number;
  readonly events: { readonly first: number; readonly text: string }[];
  nextEvent: number;
  bytes: number;
}

const textBytes = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + 2 * text.length, 0);
const byCreation = (a: StoredResponse, b: StoredResponse): number =>
  a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

export function createMemory(limits: MemoryLimits): SyncHistory {
  const responses = new Map<string, Entry>();
  const conversations = createMemoryConversations();
  let bytes = 0;

  const get = (tenant: string, id: string): Entry | undefined => responses.get(memoryKey(tenant, id));
  function resize(entry: Entry): void {
    const { body, input, output } = entry.response;
    const size = 200 + textBytes([body, ...input, ...output, ...entry.events.map(({ text }) => text)]);
    bytes += size - entry.bytes;
    entry.bytes = size;
  }
  function remove(entry: Entry): void {
    responses.delete(memoryKey(entry.response.tenant, entry.response.id));
    bytes -= entry.bytes;
  }
  /** The one that was stored first, of either kind, until all fits. */
  function dropOldest(): void {
    while (
      responses.size + conversations.size() > limits.maxEntries ||
      bytes + conversations.bytes() > limits.maxBytes
    ) {
      const [first] = responses.values();
      const oldest = conversations.oldest();
      if (first !== undefined && (oldest === undefined || first.response.createdAt <= oldest)) remove(first);
      else if (!conversations.dropOldest()) return;
    }
  }
  const toConversation = (
    { tenant, conversationId }: StoredResponse,
    items: NewResponse["conversationItems"],
    at: number,
  ): "stored" | "no_conversation" => {
    if (items === undefined || items.length === 0) return "stored";
    return conversationId !== null && conversations.addItems(tenant, conversationId, items, at)
      ? "stored"
      : "no_conversation";
  };

  const store: SyncStore = {
    putResponse({ itemIds, conversationItems, ...response }) {
      const key = memoryKey(response.tenant, response.id);
      if (responses.has(key)) throw new HistoryConflictError(`a response '${response.id}' exists`);
      const entry: Entry = {
        response,
        itemIds: new Set(itemIds),
        updatedAt: response.createdAt,
        events: [],
        nextEvent: 0,
        bytes: 0,
      };
      responses.set(key, entry);
      resize(entry);
      return toConversation(response, conversationItems, response.createdAt);
    },
    getResponse: (tenant, id) => get(tenant, id)?.response ?? null,
    getState(tenant, id) {
      const entry = get(tenant, id);
      return entry === undefined ? null : stateOf(entry.response.status, entry.updatedAt);
    },
    updateResponse({ tenant, id, updatedAt, ifStatus, status, result, conversationItems }) {
      const entry = get(tenant, id);
      if (entry === undefined) return "not_found";
      if (ifStatus !== undefined && !ifStatus.includes(entry.response.status)) return "other_status";
      entry.updatedAt = updatedAt;
      entry.response = {
        ...entry.response,
        ...(status !== undefined && { status }),
        ...(result !== undefined && { body: result.body, output: result.output }),
      };
      if (result !== undefined) entry.itemIds = new Set(result.itemIds);
      resize(entry);
      return toConversation(entry.response, conversationItems, updatedAt);
    },
    deleteResponse(tenant, id) {
      const entry = get(tenant, id);
      if (entry !== undefined) remove(entry);
      return entry !== undefined;
    },
    listResponses(tenant, kind, page) {
      const listed = [...responses.values()]
        .map(({ response }) => response)
        .filter((response) => response.tenant === tenant && response.kind === kind)
        .sort(byCreation);
      const { data, hasMore } = pageOf(listed, ({ id }) => id, page);
      return { data: data.map(({ id, createdAt, status, body }) => ({ id, createdAt, status, body })), hasMore };
    },
    readChain(tenant, id, limits) {
      const links: ChainLink[] = [];
      let bytes = 0;
      for (let at = get(tenant, id); at !== undefined; ) {
        const { id: turnId, kind, createdAt, previousId, conversationId, model, status, input, output } = at.response;
        bytes += turnBytes(at.response);
        const turn = { id: turnId, kind, createdAt, conversationId, model, status, input, output };
        links.push({ turn, previous: previousId, bytes });
        const goesOn = previousId !== null && links.length < limits.maxTurns && bytes <= limits.maxBytes;
        at = goesOn ? get(tenant, previousId) : undefined;
      }
      return links.length === 0 ? null : chainOf(links, limits);
    },
    listInputItems(tenant, id, page) {
      const entry = get(tenant, id);
      if (entry === undefined) return null;
      const items = entry.response.input.map((json) => ({ id: idOf(json), json }));
      return pageOf(items, (item) => item.id, page);
    },
    findItems(tenant, ids) {
      const found = new Map(conversations.itemsById(tenant, ids).map((item) => [item.id, item]));
      const holders = [...responses.values()]
        .filter(({ response }) => response.tenant === tenant)
        .sort((a, b) => (a.response.id < b.response.id ? -1 : 1));
      for (const id of new Set(ids)) {
        const holder = found.has(id) ? undefined : holders.find(({ itemIds }) => itemIds.has(id))?.response;
        const json = [...(holder?.input ?? []), ...(holder?.output ?? [])].find((text) => idOf(text) === id);
        if (json !== undefined) found.set(id, { id, json } satisfies StoredItem);
      }
      return [...found.values()];
    },
    ...conversations.store,
    appendEvents(tenant, id, first, events) {
      const entry = get(tenant, id);
      if (entry === undefined || !(UNFINISHED_STATUSES as readonly string[]).includes(entry.response.status))
        return false;
      if (events.length === 0) return true;
      if (first !== entry.nextEvent)
        throw new HistoryConflictError(`the log of '${id}' does not end just before event ${first}`);
      const text = joinEvents(events);
      entry.events.push({ first, text });
      entry.nextEvent += events.length;
      const more = textBytes([text]); // all of it is counted too often to be added up each time
      entry.bytes += more;
      bytes += more;
      return true;
    },
    readEvents(tenant, id, after, { maxEvents, maxBytes }) {
      const entry = get(tenant, id);
      return entry === undefined ? null : eventsIn(entry.events, after, maxEvents, maxBytes);
    },
    listUnfinished(updatedBefore, limit) {
      const unfinished: readonly string[] = UNFINISHED_STATUSES;
      return [...responses.values()]
        .filter(({ response, updatedAt }) => unfinished.includes(response.status) && updatedAt < updatedBefore)
        .sort(
          (a, b) =>
            a.updatedAt - b.updatedAt ||
            (memoryKey(a.response.tenant, a.response.id) < memoryKey(b.response.tenant, b.response.id) ? -1 : 1),
        )
        .slice(0, limit)
        .map(({ response: { tenant, id, kind, status }, updatedAt }) => ({ tenant, id, kind, status, updatedAt }));
    },
    removeExpired(before, limit) {
      const expired = [...responses.values()]
        .filter(({ response }) => response.createdAt < before)
        .sort((a, b) => a.response.createdAt - b.response.createdAt)
        .slice(0, limit);
      for (const entry of expired) remove(entry);
      return (
        expired.length + (expired.length < limit ? conversations.removeExpired(before, limit - expired.length) : 0)
      );
    },
  };

  return {
    execute(calls) {
      return calls.map(({ method, args }) => {
        try {
          const run = store[method] as (...given: readonly unknown[]) => unknown;
          const value = run(...args);
          dropOldest();
          return { value };
        } catch (error) {
          if (error instanceof HistoryConflictError || error instanceof UnknownCursorError) return { error };
          throw error;
        }
      });
    },
    close() {
      responses.clear();
    },
  };
}
