import { HistoryConflictError } from "./errors.ts";
import { memoryKey } from "./memory-key.ts";
import { pageOf } from "./page.ts";
import type { Conversation, StoredItem, SyncStore } from "./store.ts";

interface Held {
  conversation: Conversation;
  updatedAt: number;
  /** Keys of its items, in order. */
  readonly items: Set<string>;
}

type ConversationMethods =
  | "createConversation"
  | "getConversation"
  | "updateConversation"
  | "deleteConversation"
  | "addItems"
  | "getItem"
  | "listItems"
  | "newestItems"
  | "removeItem";

export interface MemoryConversations {
  readonly store: Pick<SyncStore, ConversationMethods>;
  readonly addItems: SyncStore["addItems"];
  itemsById(tenant: string, ids: readonly string[]): StoredItem[];
  removeExpired(before: number, limit: number): number;
  size(): number;
  bytes(): number;
  /** When the one that was made first was made. */
  oldest(): number | undefined;
  /** False if there is none. */
  dropOldest(): boolean;
}

/** Conversations of the store in memory; items are counted by how many conversations hold them. */
export function createMemoryConversations(): MemoryConversations {
  const conversations = new Map<string, Held>();
  const items = new Map<string, { readonly item: StoredItem; holders: number }>();
  let bytes = 0;

  const get = (tenant: string, id: string): Held | undefined => conversations.get(memoryKey(tenant, id));
  const itemAt = (key: string): StoredItem => items.get(key)!.item;
  const sizeOf = ({ metadata }: Conversation): number => 200 + 2 * metadata.length;

  function release(key: string): void {
    const held = items.get(key);
    if (held === undefined || --held.holders > 0) return;
    items.delete(key);
    bytes -= 2 * held.item.json.length;
  }
  function remove(held: Held): void {
    conversations.delete(memoryKey(held.conversation.tenant, held.conversation.id));
    bytes -= sizeOf(held.conversation);
    for (const key of held.items) release(key);
  }
  function change(held: Held, conversation: Conversation, updatedAt: number): void {
    bytes += sizeOf(conversation) - sizeOf(held.conversation);
    held.conversation = conversation;
    held.updatedAt = updatedAt;
  }

  const addItems: SyncStore["addItems"] = (tenant, id, added, addedAt) => {
    const held = get(tenant, id);
    if (held === undefined) return false;
    for (const item of added) {
      const key = memoryKey(tenant, item.id);
      if (held.items.has(key)) continue;
      held.items.add(key);
      const shared = items.get(key);
      if (shared !== undefined) shared.holders++;
      else {
        items.set(key, { item, holders: 1 });
        bytes += 2 * item.json.length;
      }
    }
    held.updatedAt = addedAt;
    return true;
  };

  const store: MemoryConversations["store"] = {
    createConversation(conversation, first) {
      const { tenant, id, createdAt } = conversation;
      if (get(tenant, id) !== undefined) throw new HistoryConflictError(`a conversation '${id}' exists`);
      conversations.set(memoryKey(tenant, id), { conversation, updatedAt: createdAt, items: new Set() });
      bytes += sizeOf(conversation);
      addItems(tenant, id, first, createdAt);
    },
    getConversation: (tenant, id) => get(tenant, id)?.conversation ?? null,
    updateConversation(tenant, id, metadata, updatedAt) {
      const held = get(tenant, id);
      if (held === undefined) return null;
      change(held, { ...held.conversation, metadata }, updatedAt);
      return held.conversation;
    },
    deleteConversation(tenant, id) {
      const held = get(tenant, id);
      if (held !== undefined) remove(held);
      return held !== undefined;
    },
    addItems,
    getItem(tenant, id, itemId) {
      const key = memoryKey(tenant, itemId);
      return get(tenant, id)?.items.has(key) ? itemAt(key) : null;
    },
    listItems(tenant, id, page) {
      const held = get(tenant, id);
      return held === undefined ? null : pageOf([...held.items].map(itemAt), (item) => item.id, page);
    },
    newestItems(tenant, id, { maxItems, maxBytes }) {
      const held = get(tenant, id);
      if (held === undefined) return null;
      const newest: StoredItem[] = [];
      let size = 0;
      for (const key of [...held.items].toReversed()) {
        const item = itemAt(key);
        size += Buffer.byteLength(item.json);
        if (newest.length > 0 && (newest.length >= maxItems || size > maxBytes)) break;
        newest.push(item);
      }
      return { items: newest.toReversed(), more: newest.length < held.items.size };
    },
    removeItem(tenant, id, itemId) {
      const key = memoryKey(tenant, itemId);
      const removed = get(tenant, id)?.items.delete(key) === true;
      if (removed) release(key);
      return removed;
    },
  };

  return {
    store,
    addItems,
    itemsById: (tenant, ids) =>
      [...new Set(ids)].map((id) => items.get(memoryKey(tenant, id))?.item).filter((item) => item !== undefined),
    removeExpired(before, limit) {
      const expired = [...conversations.values()]
        .filter(({ updatedAt }) => updatedAt < before)
        .sort((a, b) => a.updatedAt - b.updatedAt)
        .slice(0, limit);
      for (const held of expired) remove(held);
      return expired.length;
    },
    size: () => conversations.size,
    bytes: () => bytes,
    oldest() {
      const [first] = conversations.values();
      return first?.conversation.createdAt;
    },
    dropOldest() {
      const [first] = conversations.values();
      if (first !== undefined) remove(first);
      return first !== undefined;
    },
  };
}
