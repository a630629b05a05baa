import type { Names } from "../schema.ts";
import type { HistoryStore, NewResponse, StoreMethod } from "../store.ts";
import { conversationWork } from "./conversations.ts";
import { eventWork } from "./events.ts";
import { responseWork } from "./responses.ts";
import type { Dialect, Work } from "./statement.ts";
import { tablesOf } from "./tables.ts";

export type Works = {
  readonly [M in StoreMethod]: (...args: Parameters<HistoryStore[M]>) => Work<Awaited<ReturnType<HistoryStore[M]>>>;
};

/** Works that change nothing, and so need no transaction. */
export const READS: ReadonlySet<StoreMethod> = new Set<StoreMethod>([
  "getResponse",
  "getState",
  "listResponses",
  "readChain",
  "listInputItems",
  "findItems",
  "getConversation",
  "getItem",
  "listItems",
  "newestItems",
  "readEvents",
  "listUnfinished",
]);

/** Whether PostgreSQL does it in one statement, or reads only, and so needs no transaction around it. */
export function isSingle(method: StoreMethod, args: readonly unknown[]): boolean {
  if (method === "putResponse") return ((args[0] as NewResponse).conversationItems ?? []).length === 0;
  return READS.has(method) || method === "appendEvents";
}

/** All that a store does, in statements. A work that throws a conflict has changed nothing before. */
export function worksOf(dialect: Dialect, names: Names): Works {
  const tables = tablesOf(dialect, names);
  const conversations = conversationWork(tables);
  const { removeExpiredResponses, ...responses } = responseWork(tables, conversations);
  const { removeExpiredConversations, itemsById: _, ...rest } = conversations;
  return {
    ...responses,
    ...rest,
    ...eventWork(tables),
    addItems: (tenant, id, items, addedAt) => conversations.addItems(tenant, id, items, addedAt, null),
    *removeExpired(before, limit) {
      const removed = yield* removeExpiredResponses(before, limit);
      return removed + (removed < limit ? yield* removeExpiredConversations(before, limit - removed) : 0);
    },
  };
}
