import { HistoryUnavailableError } from "./errors.ts";
import { storeOf } from "./host.ts";
import type { HistoryStore, NewResponse, PageRequest, ResponseUpdate, StoredItem, StoreMethod } from "./store.ts";

/** Longer ids and tenants are nobody's; databases refuse keys of some kilobytes. */
const LONGEST_ID = 512;
const LARGEST_PAGE = 1000;
const MOST_IDS = 1000;
const MOST_ROWS = 1_000_000;

/** Ids come from clients. What no store could hold (control characters, halves of surrogate pairs) is not there either. */
function isId(id: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return id !== "" && id.length <= LONGEST_ID && !/[\x00-\x1f\x7f]/.test(id) && id.isWellFormed();
}
const isTenant = (tenant: string): boolean => tenant === "" || isId(tenant);

function requireIds(what: string, ids: readonly string[]): void {
  if (!ids.every(isId))
    throw new TypeError(`${what} must have 1 to ${LONGEST_ID} characters and no control characters`);
}
const itemIdsOf = (items: readonly StoredItem[] | undefined): string[] => (items ?? []).map(({ id }) => id);

type Args<M extends StoreMethod> = Parameters<HistoryStore[M]>;

/** What a call for something that cannot be there answers. */
const ABSENT: { readonly [M in StoreMethod]?: Awaited<ReturnType<HistoryStore[M]>> } = {
  getResponse: null,
  getState: null,
  deleteResponse: false,
  readChain: null,
  listInputItems: null,
  getConversation: null,
  updateConversation: null,
  deleteConversation: false,
  addItems: false,
  getItem: null,
  listItems: null,
  newestItems: null,
  removeItem: false,
  appendEvents: false,
  readEvents: null,
  updateResponse: "not_found",
  findItems: [],
  listResponses: { data: [], hasMore: false },
};

/** Throws a `TypeError` for a call that only a defect of ours makes; true where nothing can be found. */
function isHopeless(method: StoreMethod, args: readonly unknown[]): boolean {
  const [first, second, third, fourth] = args;
  switch (method) {
    case "putResponse": {
      const { tenant, id, itemIds, conversationItems } = first as NewResponse;
      if (!isTenant(tenant)) throw new TypeError("no tenant");
      requireIds("ids", [id, ...itemIds, ...itemIdsOf(conversationItems)]);
      return false;
    }
    case "updateResponse": {
      const { tenant, id, result, conversationItems } = first as ResponseUpdate;
      requireIds("ids", [...(result?.itemIds ?? []), ...itemIdsOf(conversationItems)]);
      return !isTenant(tenant) || !isId(id);
    }
    case "createConversation": {
      const [{ tenant, id }, items] = args as Args<"createConversation">;
      if (!isTenant(tenant)) throw new TypeError("no tenant");
      requireIds("ids", [id, ...itemIdsOf(items)]);
      return false;
    }
    case "addItems":
      requireIds("ids", itemIdsOf(third as readonly StoredItem[]));
      break;
    case "appendEvents":
      if ((fourth as readonly string[]).some((event) => event.includes("\n")))
        throw new TypeError("an event holds a line end");
      break;
    case "listUnfinished":
    case "removeExpired":
      return false;
    case "findItems":
    case "listResponses":
      return !isTenant(first as string);
  }
  const ids = method === "getItem" || method === "removeItem" ? [second, third] : [second];
  return !isTenant(first as string) || !(ids as string[]).every(isId);
}

const whole = (value: number, least: number, most = Number.MAX_SAFE_INTEGER): number =>
  Math.min(Math.max(least, Math.floor(value)), most);

/** A cursor that could be no id is one that no list has. */
const cursor = (name: string | undefined): string | undefined =>
  name === undefined || isId(name) ? name : "-".repeat(LONGEST_ID + 1);

function boundedPage({ limit, order, ...cursors }: PageRequest): PageRequest {
  const [after, before] = [cursor(cursors.after), cursor(cursors.before)];
  return {
    limit: whole(limit, 1, LARGEST_PAGE),
    order,
    ...(after !== undefined && { after }),
    ...(before !== undefined && { before }),
  };
}

/** The call with its numbers in bounds, and with such ids only as can be there. */
function bounded(method: StoreMethod, args: readonly unknown[]): readonly unknown[] {
  switch (method) {
    case "findItems": {
      const [tenant, ids] = args as Args<"findItems">;
      return [tenant, ids.filter(isId).slice(0, MOST_IDS)];
    }
    case "listItems":
    case "listInputItems":
    case "listResponses": {
      const [tenant, of, page] = args as Args<"listItems">;
      return [tenant, of, boundedPage(page)];
    }
    case "readChain": {
      const [tenant, id, { maxTurns, maxBytes }] = args as Args<"readChain">;
      return [tenant, id, { maxTurns: whole(maxTurns, 1), maxBytes: whole(maxBytes, 0) }];
    }
    case "newestItems": {
      const [tenant, id, { maxItems, maxBytes }] = args as Args<"newestItems">;
      return [tenant, id, { maxItems: whole(maxItems, 1, MOST_ROWS), maxBytes: whole(maxBytes, 0) }];
    }
    case "readEvents": {
      const [tenant, id, after, { maxEvents, maxBytes }] = args as Args<"readEvents">;
      const limits = { maxEvents: whole(maxEvents, 1, MOST_ROWS), maxBytes: whole(maxBytes, 1) };
      return [tenant, id, whole(after, -1), limits];
    }
    default:
      return args;
  }
}

/**
 * What all stores have in common: ids that cannot be there are not found, pages are bounded, and an answer that does not come within
 * `timeoutMs` is a `HistoryUnavailableError`.
 */
export function checkedHistory(store: HistoryStore, timeoutMs: number): HistoryStore {
  return storeOf(
    async (method, args) => {
      if (isHopeless(method, args)) return ABSENT[method];
      const call = store[method] as (...given: readonly unknown[]) => Promise<unknown>;
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(
          () => reject(new HistoryUnavailableError(new Error(`no answer in ${timeoutMs} ms`))),
          timeoutMs,
        );
      });
      try {
        return await Promise.race([call(...bounded(method, args)), late]);
      } finally {
        clearTimeout(timer);
      }
    },
    () => store.close(),
  );
}
