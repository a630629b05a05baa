import { chainOf } from "../chain.ts";
import { HistoryConflictError, UnknownCursorError } from "../errors.ts";
import { arrayOfTexts, arrayTexts, idOf } from "../json-text.ts";
import { isBackward, pageOf, pageOfRows } from "../page.ts";
import { bodyOf, itemOf, itemsAmong, outputBeside, stateOf } from "../rows.ts";
import type {
  Chain,
  ChainLimits,
  ListedResponse,
  NewResponse,
  Page,
  PageRequest,
  PutOutcome,
  ResponseKind,
  ResponseState,
  ResponseUpdate,
  StoredItem,
  StoredResponse,
  UnfinishedResponse,
  UpdateOutcome,
} from "../store.ts";
import { UNFINISHED_STATUSES } from "../store.ts";
import type { ConversationWork } from "./conversations.ts";
import { millis, responseOf, turnOf } from "./response-rows.ts";
import type { Row, Work } from "./statement.ts";
import type { Tables } from "./tables.ts";

/** What is done to responses and their log's rows. */
export function responseWork({ dialect, at, columns }: Tables, conversations: ConversationWork) {
  const { json, time, text, micros, eachText } = dialect;
  const column = (name: string, from?: string): string => columns("responses", name, from);
  const responses = at("responses");
  const responseItems = at("response_items");
  const ref = (name: string, from?: string): string => columns("response_items", name, from);
  const here = `${column("tenant")} = $1 AND ${column("id")} = $2`;

  const whole = (from?: string): string =>
    [
      ...[
        "tenant",
        "id",
        "kind",
        "previous_response_id",
        "conversation_id",
        "model",
        "safety_identifier",
        "status",
      ].map((name) => `${column(name, from)} AS ${name}`),
      `${micros(column("created_at", from))} AS created`,
      ...["input", "raw_response", "output_items"].map((name) => `${text(column(name, from))} AS ${name}`),
    ].join(", ");

  const insert = `INSERT INTO ${responses} (${columns(
    "responses",
    "tenant id kind created_at updated_at previous_response_id conversation_id model safety_identifier status input raw_response output_items",
  )}) VALUES ($1, $2, $3, ${time("$4")}, ${time("$4")}, $5, $6, $7, $8, $9, ${json("$10")}, ${json("$11")}, ${json("$12")})
    ON CONFLICT DO NOTHING RETURNING 1 AS done`;
  const insertRefs = `INSERT INTO ${responseItems} (${columns("response_items", "tenant response_id item_id")})
    SELECT $1, $2, value FROM ${eachText("$3")} WHERE true ON CONFLICT DO NOTHING`;
  /** Both in one statement, for a database that is a round trip away. */
  const insertWithRefs = `WITH put AS (${insert}), refs AS (
      INSERT INTO ${responseItems} (${columns("response_items", "tenant response_id item_id")})
      SELECT $1, $2, value FROM put, ${eachText("$13")} ON CONFLICT DO NOTHING
    ) SELECT done FROM put`;
  const get = `SELECT ${whole()} FROM ${responses} WHERE ${here}`;
  const size = (from: string): string =>
    `coalesce(${dialect.octets(text(column("input", from)))}, 0) + coalesce(${dialect.octets(
      `coalesce(${text(column("output_items", from))}, ${text(column("raw_response", from))})`,
    )}, 0)`;
  const chain = `WITH RECURSIVE chain(id, previous, depth, bytes) AS (
      SELECT ${column("id", "r")}, ${column("previous_response_id", "r")}, 1, ${size("r")} FROM ${responses} r
      WHERE ${column("tenant", "r")} = $1 AND ${column("id", "r")} = $2
    UNION ALL
      SELECT ${column("id", "r")}, ${column("previous_response_id", "r")}, chain.depth + 1, chain.bytes + ${size("r")}
      FROM chain JOIN ${responses} r ON ${column("tenant", "r")} = $1 AND ${column("id", "r")} = chain.previous
      WHERE chain.depth < ${dialect.int("$3")} AND chain.bytes <= ${dialect.int("$4")}
    ) SELECT chain.previous, chain.bytes, ${whole("r")}
    FROM chain JOIN ${responses} r ON ${column("tenant", "r")} = $1 AND ${column("id", "r")} = chain.id ORDER BY chain.depth`;

  function* putResponse(response: NewResponse): Work<PutOutcome> {
    const { tenant, id, kind, createdAt, previousId, conversationId, model, safetyIdentifier, status } = response;
    const atOnce = dialect.name === "postgres";
    const inserted = yield {
      sql: atOnce ? insertWithRefs : insert,
      params: [
        tenant,
        id,
        kind,
        createdAt * 1000,
        previousId,
        conversationId,
        model,
        safetyIdentifier,
        status,
        arrayOfTexts(response.input),
        response.body,
        outputBeside(kind, response.body, response.output),
        ...(atOnce ? [JSON.stringify(response.itemIds)] : []),
      ],
    };
    if (inserted.length === 0) throw new HistoryConflictError(`a response '${id}' exists`);
    if (!atOnce) yield* refer(tenant, id, response.itemIds);
    return yield* toConversation(response, conversationId, createdAt, response.conversationItems);
  }

  function* refer(tenant: string, id: string, itemIds: readonly string[]): Work<void> {
    if (itemIds.length > 0) yield { sql: insertRefs, params: [tenant, id, JSON.stringify(itemIds)] };
  }

  function* toConversation(
    { tenant, id }: { readonly tenant: string; readonly id: string },
    conversationId: string | null,
    addedAt: number,
    items: readonly StoredItem[] | undefined,
  ): Work<PutOutcome> {
    if (items === undefined || items.length === 0) return "stored";
    const added =
      conversationId !== null && (yield* conversations.addItems(tenant, conversationId, items, addedAt, id));
    return added ? "stored" : "no_conversation";
  }

  function* getResponse(tenant: string, id: string): Work<StoredResponse | null> {
    const [row] = yield { sql: get, params: [tenant, id] };
    return row === undefined ? null : responseOf(row);
  }

  function* getState(tenant: string, id: string): Work<ResponseState | null> {
    const [row] = yield {
      sql: `SELECT ${column("status")} AS status, ${micros(column("updated_at"))} AS updated FROM ${responses} WHERE ${here}`,
      params: [tenant, id],
    };
    return row === undefined ? null : stateOf(row["status"] as string, millis(row["updated"]));
  }

  function* updateResponse(update: ResponseUpdate): Work<UpdateOutcome> {
    const { tenant, id, updatedAt, ifStatus, status, result, conversationItems } = update;
    const [found] = yield {
      sql: `SELECT ${column("status")} AS status, ${column("kind")} AS kind, ${column("conversation_id")} AS conversation
        FROM ${responses} WHERE ${here}${dialect.lock}`,
      params: [tenant, id],
    };
    if (found === undefined) return "not_found";
    if (ifStatus !== undefined && !ifStatus.includes(found["status"] as string)) return "other_status";
    const beside = result && outputBeside(found["kind"] as ResponseKind, result.body, result.output);
    yield {
      sql: `UPDATE ${responses} SET ${column("updated_at")} = ${time("$3")}, ${column("status")} = coalesce($4, ${column("status")})${
        result === undefined
          ? ""
          : `, ${column("raw_response")} = ${json("$5")}, ${column("output_items")} = ${json("$6")}`
      } WHERE ${here}`,
      params: [tenant, id, updatedAt * 1000, status ?? null, ...(result ? [result.body, beside ?? null] : [])],
    };
    if (result !== undefined) {
      yield {
        sql: `DELETE FROM ${responseItems} WHERE ${ref("tenant")} = $1 AND ${ref("response_id")} = $2`,
        params: [tenant, id],
      };
      yield* refer(tenant, id, result.itemIds);
    }
    return yield* toConversation(update, found["conversation"] as string | null, updatedAt, conversationItems);
  }

  function* deleteResponse(tenant: string, id: string): Work<boolean> {
    const gone = yield { sql: `DELETE FROM ${responses} WHERE ${here} RETURNING 1 AS done`, params: [tenant, id] };
    if (gone.length > 0) yield* forget([{ tenant, id }]);
    return gone.length > 0;
  }

  /** What else there is of responses that are gone: what refers to their items, and their logs. */
  function* forget(gone: readonly Row[]): Work<void> {
    if (gone.length === 0) return;
    const pairs = JSON.stringify(gone.map(({ tenant, id }) => ({ tenant, id })));
    for (const table of ["response_items", "response_events"] as const)
      yield {
        sql: `DELETE FROM ${at(table)} WHERE (${columns(table, "tenant response_id")}) IN
          (SELECT value->>'tenant', value->>'id' FROM ${dialect.each("$1")})`,
        params: [pairs],
      };
  }

  function* listResponses(tenant: string, kind: ResponseKind, page: PageRequest): Work<Page<ListedResponse>> {
    const upwards = (page.order === "asc") !== isBackward(page);
    const key = columns("responses", "created_at id");
    const conditions: string[] = [];
    const params: (string | number)[] = [tenant, kind, page.limit + 1];
    for (const param of ["after", "before"] as const) {
      const cursor = page[param];
      if (cursor === undefined) continue;
      params.push(cursor);
      const place = `(SELECT ${key} FROM ${responses} WHERE ${column("tenant")} = $1 AND ${column("kind")} = $2 AND ${column("id")} = $${params.length})`;
      const [known] = yield {
        sql: `SELECT 1 AS known FROM ${responses} WHERE ${here} AND ${column("kind")} = $3`,
        params: [tenant, cursor, kind],
      };
      if (known === undefined) throw new UnknownCursorError(param);
      conditions.push(` AND (${key}) ${(page.order === "asc") === (param === "after") ? ">" : "<"} ${place}`);
    }
    const direction = upwards ? "ASC" : "DESC";
    const rows = yield {
      sql: `SELECT ${columns("responses", "id")} AS id, ${micros(column("created_at"))} AS created, ${column("status")} AS status,
          ${text(column("raw_response"))} AS body
        FROM ${responses} WHERE ${column("tenant")} = $1 AND ${column("kind")} = $2${conditions.join("")}
        ORDER BY ${column("created_at")} ${direction}, ${column("id")} ${direction} LIMIT $3`,
      params,
    };
    return pageOfRows(
      rows.map((row) => ({
        id: row["id"] as string,
        createdAt: millis(row["created"]),
        status: row["status"] as string,
        body: bodyOf(row["body"] as string | null),
      })),
      page,
    );
  }

  function* readChain(tenant: string, id: string, limits: ChainLimits): Work<Chain | null> {
    const rows = yield { sql: chain, params: [tenant, id, limits.maxTurns, limits.maxBytes] };
    if (rows.length === 0) return null;
    return chainOf(
      rows.map((row) => ({
        turn: turnOf(row),
        previous: row["previous"] as string | null,
        bytes: Number(row["bytes"]),
      })),
      limits,
    );
  }

  function* listInputItems(tenant: string, id: string, page: PageRequest): Work<Page<StoredItem> | null> {
    const [row] = yield {
      sql: `SELECT ${text(column("input"))} AS input FROM ${responses} WHERE ${here}`,
      params: [tenant, id],
    };
    if (row === undefined) return null;
    const items = arrayTexts((row["input"] as string | null) ?? "[]").map((json) => ({ id: idOf(json), json }));
    return pageOf(items, (item) => item.id, page);
  }

  function* findItems(tenant: string, ids: readonly string[]): Work<readonly StoredItem[]> {
    const rows = yield* conversations.itemsById(tenant, ids);
    const found = new Map(rows.map((row) => [row.id, itemOf(row)]));
    const missing = new Set(ids.filter((id) => !found.has(id)));
    if (missing.size > 0) {
      const holders = yield {
        sql: `SELECT ${ref("item_id")} AS item, min(${ref("response_id")}) AS response FROM ${responseItems}
          WHERE ${ref("tenant")} = $1 AND ${ref("item_id")} IN (SELECT value FROM ${eachText("$2")}) GROUP BY ${ref("item_id")}`,
        params: [tenant, JSON.stringify([...missing])],
      };
      const rows = yield {
        sql: `SELECT ${whole()} FROM ${responses} WHERE ${column("tenant")} = $1 AND ${column("id")} IN (SELECT value FROM ${eachText("$2")})`,
        params: [tenant, JSON.stringify([...new Set(holders.map(({ response }) => response))])],
      };
      for (const { id, input, output } of rows.map(responseOf)) {
        const here = new Set(holders.filter(({ response }) => response === id).map(({ item }) => item as string));
        for (const item of itemsAmong(here, [...input, ...output])) found.set(item.id, item);
      }
    }
    return [...found.values()];
  }

  function* listUnfinished(updatedBefore: number, limit: number): Work<readonly UnfinishedResponse[]> {
    const rows = yield {
      sql: `SELECT ${column("tenant")} AS tenant, ${column("id")} AS id, ${column("kind")} AS kind, ${column("status")} AS status,
          ${micros(column("updated_at"))} AS updated
        FROM ${responses} WHERE ${column("status")} IN (${UNFINISHED_STATUSES.map((status) => `'${status}'`).join(", ")})
          AND ${column("updated_at")} < ${time("$1")}
        ORDER BY ${column("updated_at")}, ${column("tenant")}, ${column("id")} LIMIT $2`,
      params: [updatedBefore * 1000, limit],
    };
    return rows.map((row) => ({
      tenant: row["tenant"] as string,
      id: row["id"] as string,
      kind: row["kind"] as ResponseKind,
      status: row["status"] as string,
      updatedAt: millis(row["updated"]),
    }));
  }

  function* removeExpiredResponses(before: number, limit: number): Work<number> {
    const gone = yield {
      sql: `DELETE FROM ${responses} WHERE (${columns("responses", "tenant id")}) IN (
          SELECT ${columns("responses", "tenant id")} FROM ${responses} WHERE ${column("created_at")} < ${time("$1")}
          ORDER BY ${column("created_at")} LIMIT $2)
        RETURNING ${column("tenant")} AS tenant, ${column("id")} AS id`,
      params: [before * 1000, limit],
    };
    yield* forget(gone);
    return gone.length;
  }

  return {
    putResponse,
    getResponse,
    getState,
    updateResponse,
    deleteResponse,
    listResponses,
    readChain,
    listInputItems,
    findItems,
    listUnfinished,
    removeExpiredResponses,
  };
}
