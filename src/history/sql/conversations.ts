import { HistoryConflictError, UnknownCursorError } from "../errors.ts";
import { isBackward, pageOfRows } from "../page.ts";
import { type ItemColumns, itemColumns, itemOf } from "../rows.ts";
import type { Conversation, NewestItems, Page, PageRequest, StoredItem } from "../store.ts";
import type { Row, Work } from "./statement.ts";
import type { Tables } from "./tables.ts";

export type ConversationWork = ReturnType<typeof conversationWork>;

/** What is done to conversations. Items lie in one table, and a link puts one into a conversation, at a time of its own. */
export function conversationWork({ dialect, at, columns }: Tables) {
  const { json, time, text, micros, int } = dialect;
  const conversations = at("conversations");
  const items = at("conversation_items");
  const links = at("conversation_item_links");
  const conversation = (name: string): string => columns("conversations", name);
  const item = (name: string, from?: string): string => columns("conversation_items", name, from);
  const link = (name: string, from?: string): string => columns("conversation_item_links", name, from);
  const here = `${conversation("tenant")} = $1 AND ${conversation("id")} = $2`;
  const linked = (from?: string): string => `${link("tenant", from)} = $1 AND ${link("conversation_id", from)} = $2`;

  const wholeItem = `${item("id", "i")} AS id, ${item("item_type", "i")} AS type, ${item("role", "i")} AS role,
    ${item("status", "i")} AS status, ${text(item("content", "i"))} AS content`;
  const joined = `${links} l JOIN ${items} i ON ${item("tenant", "i")} = ${link("tenant", "l")} AND ${item("id", "i")} = ${link("item_id", "l")}`;
  const wholeConversation = `${micros(conversation("created_at"))} AS created, ${text(conversation("metadata"))} AS metadata`;

  const insertItems = `INSERT INTO ${items} (${columns("conversation_items", "tenant response_id created_at id item_type role status content")})
    SELECT $1, $2, ${time("$3")}, value->>'id', value->>'type', value->>'role', value->>'status', ${json("(value->>'content')")}
    FROM ${dialect.each("$4")} WHERE true ON CONFLICT DO NOTHING`;
  const insertLinks = `INSERT INTO ${links} (${columns("conversation_item_links", "tenant conversation_id item_id added_at")})
    SELECT $1, $2, value->>'id', ${time(`(${int("$3")} + ${int("value->>'place'")})`)} FROM ${dialect.each("$4")}
    WHERE true ON CONFLICT DO NOTHING`;

  function* createConversation(made: Conversation, first: readonly StoredItem[]): Work<void> {
    const inserted = yield {
      sql: `INSERT INTO ${conversations} (${columns("conversations", "tenant id created_at updated_at metadata")})
        VALUES ($1, $2, ${time("$3")}, ${time("$3")}, ${json("$4")}) ON CONFLICT DO NOTHING RETURNING 1 AS done`,
      params: [made.tenant, made.id, made.createdAt * 1000, made.metadata],
    };
    if (inserted.length === 0) throw new HistoryConflictError(`a conversation '${made.id}' exists`);
    if (first.length > 0) yield* addItems(made.tenant, made.id, first, made.createdAt, null);
  }

  function* getConversation(tenant: string, id: string): Work<Conversation | null> {
    const [row] = yield {
      sql: `SELECT ${wholeConversation} FROM ${conversations} WHERE ${here}`,
      params: [tenant, id],
    };
    return row === undefined ? null : conversationOf(tenant, id, row);
  }

  function* updateConversation(
    tenant: string,
    id: string,
    metadata: string,
    updatedAt: number,
  ): Work<Conversation | null> {
    const [row] = yield {
      sql: `UPDATE ${conversations} SET ${conversation("metadata")} = ${json("$3")}, ${conversation("updated_at")} = ${time("$4")}
        WHERE ${here} RETURNING ${wholeConversation}`,
      params: [tenant, id, metadata, updatedAt * 1000],
    };
    return row === undefined ? null : conversationOf(tenant, id, row);
  }

  function* deleteConversation(tenant: string, id: string): Work<boolean> {
    const gone = yield { sql: `DELETE FROM ${conversations} WHERE ${here} RETURNING 1 AS done`, params: [tenant, id] };
    if (gone.length === 0) return false;
    const unlinked = yield {
      sql: `DELETE FROM ${links} WHERE ${linked()} RETURNING ${link("tenant")} AS tenant, ${link("item_id")} AS id`,
      params: [tenant, id],
    };
    yield* removeUnheld(unlinked);
    return true;
  }

  /** Removes those of these items that are in no conversation any more. */
  function* removeUnheld(candidates: readonly Row[]): Work<void> {
    if (candidates.length === 0) return;
    yield {
      sql: `DELETE FROM ${items} WHERE (${columns("conversation_items", "tenant id")}) IN
          (SELECT value->>'tenant', value->>'id' FROM ${dialect.each("$1")})
        AND NOT EXISTS (SELECT 1 FROM ${links} l WHERE ${link("tenant", "l")} = ${items}.${item("tenant")} AND ${link("item_id", "l")} = ${items}.${item("id")})`,
      params: [JSON.stringify(candidates.map(({ tenant, id }) => ({ tenant, id })))],
    };
  }

  function* addItems(
    tenant: string,
    id: string,
    added: readonly StoredItem[],
    addedAt: number,
    responseId: string | null,
  ): Work<boolean> {
    const [found] = yield {
      sql: `SELECT 1 AS found FROM ${conversations} WHERE ${here}${dialect.lock}`,
      params: [tenant, id],
    };
    if (found === undefined) return false;
    const [last] = yield {
      sql: `SELECT ${micros(`max(${link("added_at")})`)} AS last FROM ${links} WHERE ${linked()}`,
      params: [tenant, id],
    };
    // each item has a time of its own, so that lists have one order
    const start = Math.max(addedAt * 1000, Number(last?.["last"] ?? 0) + 1);
    const rows = JSON.stringify(added.map((entry, place) => ({ ...itemColumns(entry), place: String(place) })));
    yield { sql: insertItems, params: [tenant, responseId, addedAt * 1000, rows] };
    yield { sql: insertLinks, params: [tenant, id, start, rows] };
    yield {
      sql: `UPDATE ${conversations} SET ${conversation("updated_at")} = ${time("$3")} WHERE ${here}`,
      params: [tenant, id, addedAt * 1000],
    };
    return true;
  }

  function* getItem(tenant: string, id: string, itemId: string): Work<StoredItem | null> {
    const [row] = yield {
      sql: `SELECT ${wholeItem} FROM ${joined} WHERE ${linked("l")} AND ${link("item_id", "l")} = $3`,
      params: [tenant, id, itemId],
    };
    return row === undefined ? null : itemOf(itemRow(row));
  }

  function* listItems(tenant: string, id: string, page: PageRequest): Work<Page<StoredItem> | null> {
    if ((yield* getConversation(tenant, id)) === null) return null;
    const upwards = (page.order === "asc") !== isBackward(page);
    const key = columns("conversation_item_links", "added_at item_id");
    const conditions: string[] = [];
    const params: (string | number)[] = [tenant, id, page.limit + 1];
    for (const param of ["after", "before"] as const) {
      const cursor = page[param];
      if (cursor === undefined) continue;
      if ((yield* getItem(tenant, id, cursor)) === null) throw new UnknownCursorError(param);
      params.push(cursor);
      const place = `(SELECT ${key} FROM ${links} WHERE ${linked()} AND ${link("item_id")} = $${params.length})`;
      conditions.push(
        ` AND (${columns("conversation_item_links", "added_at item_id", "l")}) ${(page.order === "asc") === (param === "after") ? ">" : "<"} ${place}`,
      );
    }
    const direction = upwards ? "ASC" : "DESC";
    const rows = yield {
      sql: `SELECT ${wholeItem} FROM ${joined} WHERE ${linked("l")}${conditions.join("")}
        ORDER BY ${link("added_at", "l")} ${direction}, ${link("item_id", "l")} ${direction} LIMIT $3`,
      params,
    };
    return pageOfRows(
      rows.map((row) => itemOf(itemRow(row))),
      page,
    );
  }

  const newest = `SELECT * FROM (
      SELECT *, sum(bytes) OVER (ORDER BY place) AS bytes_so_far, count(*) OVER () AS read FROM (
        SELECT ${wholeItem}, ${dialect.octets(text(item("content", "i")))} AS bytes,
          row_number() OVER (ORDER BY ${link("added_at", "l")} DESC, ${link("item_id", "l")} DESC) AS place
        FROM ${joined} WHERE ${linked("l")} ORDER BY place LIMIT $3) AS newest_rows) AS sums
    WHERE place = 1 OR (bytes_so_far <= ${int("$4")} AND place < ${int("$3")}) ORDER BY place`;

  function* newestItems(
    tenant: string,
    id: string,
    { maxItems, maxBytes }: { readonly maxItems: number; readonly maxBytes: number },
  ): Work<NewestItems | null> {
    if ((yield* getConversation(tenant, id)) === null) return null;
    const rows = yield { sql: newest, params: [tenant, id, maxItems + 1, maxBytes] };
    return {
      items: rows.map((row) => itemOf(itemRow(row))).toReversed(),
      more: rows.length < Number(rows[0]?.["read"] ?? 0),
    };
  }

  function* removeItem(tenant: string, id: string, itemId: string): Work<boolean> {
    const gone = yield {
      sql: `DELETE FROM ${links} WHERE ${linked()} AND ${link("item_id")} = $3 RETURNING ${link("tenant")} AS tenant, ${link("item_id")} AS id`,
      params: [tenant, id, itemId],
    };
    yield* removeUnheld(gone);
    return gone.length > 0;
  }

  function* itemsById(tenant: string, ids: readonly string[]): Work<readonly ItemColumns[]> {
    const rows = yield {
      sql: `SELECT ${wholeItem} FROM ${items} i WHERE ${item("tenant", "i")} = $1 AND ${item("id", "i")} IN (SELECT value FROM ${dialect.eachText("$2")})`,
      params: [tenant, JSON.stringify(ids)],
    };
    return rows.map(itemRow);
  }

  /** Links first, in bounded number, and conversations once they are empty. */
  function* removeExpiredConversations(before: number, limit: number): Work<number> {
    const expired = `SELECT ${columns("conversations", "tenant id")} FROM ${conversations}
      WHERE ${conversation("updated_at")} < ${time("$1")} ORDER BY ${conversation("updated_at")} LIMIT $2`;
    const params = [before * 1000, limit];
    const unlinked = yield {
      sql: `DELETE FROM ${links} WHERE (${columns("conversation_item_links", "tenant conversation_id item_id")}) IN (
          SELECT ${columns("conversation_item_links", "tenant conversation_id item_id")} FROM ${links}
          WHERE (${columns("conversation_item_links", "tenant conversation_id")}) IN (SELECT * FROM (${expired}) AS expired) LIMIT $2)
        RETURNING ${link("tenant")} AS tenant, ${link("item_id")} AS id`,
      params,
    };
    yield* removeUnheld(unlinked);
    const gone = yield {
      sql: `DELETE FROM ${conversations} WHERE (${columns("conversations", "tenant id")}) IN (SELECT * FROM (${expired}) AS expired)
        AND NOT EXISTS (SELECT 1 FROM ${links} l WHERE ${link("tenant", "l")} = ${conversations}.${conversation("tenant")}
          AND ${link("conversation_id", "l")} = ${conversations}.${conversation("id")})
        RETURNING 1 AS done`,
      params,
    };
    return unlinked.length + gone.length;
  }

  return {
    createConversation,
    getConversation,
    updateConversation,
    deleteConversation,
    addItems,
    getItem,
    listItems,
    newestItems,
    removeItem,
    itemsById,
    removeExpiredConversations,
  };
}

function conversationOf(tenant: string, id: string, row: Row): Conversation {
  return {
    tenant,
    id,
    createdAt: Math.floor(Number(row["created"] ?? 0) / 1000),
    metadata: (row["metadata"] as string | null) ?? "{}",
  };
}

function itemRow(row: Row): ItemColumns {
  return {
    id: row["id"] as string,
    type: row["type"] as string,
    role: row["role"] as string | null,
    status: row["status"] as string | null,
    content: (row["content"] as string | null) ?? "null",
  };
}
