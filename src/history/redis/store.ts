import { type ChainLink, chainOf } from "../chain.ts";
import { HistoryConflictError, UnknownCursorError } from "../errors.ts";
import { arrayOfTexts, arrayTexts, idOf } from "../json-text.ts";
import { pageOf, pageOfRows } from "../page.ts";
import { bodyOf, type ItemColumns, itemColumns, itemOf, itemsAmong, outputBeside, outputOf, stateOf } from "../rows.ts";
import { fieldOf, type SchemaSetting } from "../schema.ts";
import type {
  ChainTurn,
  HistoryStore,
  PageRequest,
  PutOutcome,
  ResponseKind,
  StoredItem,
  UpdateOutcome,
} from "../store.ts";
import type { ScriptName } from "./scripts.ts";

type Field = string | null;
/** Runs a script for a tenant. */
export type Script = (tenant: string, ...args: readonly (string | number)[]) => Promise<unknown>;

/** The store on a connection. */
export function redisStore(
  redis: Bun.RedisClient,
  run: Readonly<Record<ScriptName, Script>>,
  schema: SchemaSetting,
): HistoryStore {
  const field = (column: string): string => fieldOf(schema, "responses", column);
  const iso = (millis: number): string => new Date(millis).toISOString();
  const flat = (items: readonly StoredItem[] | undefined): string[] =>
    (items ?? [])
      .map(itemColumns)
      .flatMap(({ id, type, role, status, content }) => [id, type, role ?? "", status ?? "", content]);
  const pageArgs = ({ order, limit, after, before }: PageRequest): (string | number)[] => [
    order,
    limit,
    after ?? "",
    before ?? "",
  ];

  async function getResponse(tenant: string, id: string): ReturnType<HistoryStore["getResponse"]> {
    const chain = (await run.readChain(tenant, id, 1, Number.MAX_SAFE_INTEGER)) as Field[][];
    const row = chain[0];
    if (row === undefined) return null;
    return {
      tenant,
      previousId: row[9] ?? null,
      safetyIdentifier: row[10] ?? null,
      body: bodyOf(row[7] ?? null),
      ...turnOf(row),
    };
  }

  return {
    async putResponse(response) {
      const { tenant, id, kind, createdAt, status, body, output, itemIds, conversationItems } = response;
      const fields: Record<string, Field> = {
        id,
        kind,
        status,
        created_at: iso(createdAt),
        previous_response_id: response.previousId,
        conversation_id: response.conversationId,
        model: response.model,
        safety_identifier: response.safetyIdentifier,
        input: arrayOfTexts(response.input),
        raw_response: body,
        output_items: outputBeside(kind, body, output),
      };
      const given = Object.entries(fields).flatMap(([name, value]) => (value === null ? [] : [field(name), value]));
      const ids = itemIds.join("\n");
      const outcome = await run.putResponse(
        tenant,
        ...[id, kind, createdAt, iso(createdAt), status, ids, ...given, "", ...flat(conversationItems)],
      );
      if (outcome === "conflict") throw new HistoryConflictError(`a response '${id}' exists`);
      return outcome as PutOutcome;
    },
    getResponse,
    async getState(tenant, id) {
      const row = (await run.getState(tenant, id)) as [string, Field] | null;
      return row === null ? null : stateOf(row[0], Number(row[1] ?? 0));
    },
    async updateResponse({ tenant, id, updatedAt, ifStatus, status, result, conversationItems }) {
      // the kind says where the body shows the output
      const kind = result === undefined ? "response" : ((await run.kindOf(tenant, id)) as ResponseKind | null);
      if (kind === null) return "not_found";
      const beside = result === undefined ? null : outputBeside(kind, result.body, result.output);
      const change = [
        (result?.itemIds ?? []).join("\n"),
        result?.body ?? "",
        beside ?? "",
        result === undefined ? 0 : 1,
      ];
      const wanted = ifStatus?.length === 0 ? " " : (ifStatus ?? []).join("\n");
      return (await run.updateResponse(
        tenant,
        ...[id, updatedAt, iso(updatedAt), wanted, status ?? "", ...change, ...flat(conversationItems)],
      )) as UpdateOutcome;
    },
    deleteResponse: async (tenant, id) => (await run.deleteResponse(tenant, id)) === 1,
    async listResponses(tenant, kind, page) {
      const rows = rowsOf<Field[]>(await run.listResponses(tenant, kind, ...pageArgs(page)));
      return pageOfRows(
        rows.map((row) => {
          const { id, createdAt, status } = turnOf(row);
          return { id, createdAt, status, body: bodyOf(row[7] ?? null) };
        }),
        page,
      );
    },
    async readChain(tenant, id, limits) {
      const rows = (await run.readChain(tenant, id, limits.maxTurns, limits.maxBytes)) as Field[][];
      const links = rows.map(
        (row): ChainLink => ({ turn: turnOf(row), previous: row[9] ?? null, bytes: Number(row[11]) }),
      );
      return links.length === 0 ? null : chainOf(links, limits);
    },
    async listInputItems(tenant, id, page) {
      const response = await getResponse(tenant, id);
      if (response === null) return null;
      return pageOf(
        response.input.map((json) => ({ id: idOf(json), json })),
        (item) => item.id,
        page,
      );
    },
    async findItems(tenant, ids) {
      const [items, held, turns] = (await run.findItems(tenant, ...new Set(ids))) as [
        Field[][],
        [string, string][],
        Field[][],
      ];
      const inResponses = turns.map(turnOf).flatMap(({ id, input, output }) => {
        const here = new Set(held.filter(([, response]) => response === id).map(([item]) => item));
        return itemsAmong(here, [...input, ...output]);
      });
      return [...items.map((row) => itemOf(itemRow(row))), ...inResponses];
    },
    async createConversation({ tenant, id, createdAt, metadata }, items) {
      const outcome = await run.createConversation(tenant, id, createdAt, iso(createdAt), metadata, ...flat(items));
      if (outcome === "conflict") throw new HistoryConflictError(`a conversation '${id}' exists`);
    },
    getConversation: async (tenant, id) => conversationOf(tenant, id, await run.getConversation(tenant, id)),
    updateConversation: async (tenant, id, metadata, updatedAt) =>
      conversationOf(tenant, id, await run.updateConversation(tenant, id, updatedAt, metadata)),
    deleteConversation: async (tenant, id) => (await run.deleteConversation(tenant, id)) === 1,
    addItems: async (tenant, id, items, addedAt) =>
      (await run.addItems(tenant, id, addedAt, iso(addedAt), ...flat(items))) === 1,
    async getItem(tenant, id, itemId) {
      const row = (await run.getItem(tenant, id, itemId)) as Field[] | null;
      return row === null ? null : itemOf(itemRow(row));
    },
    async listItems(tenant, id, page) {
      const found = await run.listItems(tenant, id, ...pageArgs(page));
      if (found === "none") return null;
      return pageOfRows(
        rowsOf<Field[]>(found).map((row) => itemOf(itemRow(row))),
        page,
      );
    },
    async newestItems(tenant, id, { maxItems, maxBytes }) {
      const found = (await run.newestItems(tenant, id, maxItems, maxBytes)) as [...Field[][], number] | null;
      if (found === null) return null;
      const total = found.pop() as number;
      const items = (found as Field[][]).map((row) => itemOf(itemRow(row))).toReversed();
      return { items, more: items.length < total };
    },
    removeItem: async (tenant, id, itemId) => (await run.removeItem(tenant, id, itemId)) === 1,
    async appendEvents(tenant, id, first, events) {
      const outcome = await run.appendEvents(tenant, id, first, ...events);
      if (outcome === "conflict")
        throw new HistoryConflictError(`the log of '${id}' does not end just before event ${first}`);
      return outcome === "stored";
    },
    async readEvents(tenant, id, after, { maxEvents, maxBytes }) {
      const events = (await run.readEvents(tenant, id, after, maxEvents, maxBytes)) as string[] | null;
      return events?.map((json, index) => ({ sequence: after + 1 + index, json })) ?? null;
    },
    async listUnfinished(updatedBefore, limit) {
      const rows = (await run.listUnfinished("", updatedBefore, limit)) as [
        string,
        string,
        ResponseKind,
        string,
        string,
      ][];
      return rows.map(([tenant, id, kind, status, at]) => ({ tenant, id, kind, status, updatedAt: Number(at) }));
    },
    removeExpired: async (before, limit) => Number(await run.removeExpired("", before, limit)),
    async close() {
      redis.close();
    },
  };
}

/** Rows of a list, or the cursor that is not there. */
function rowsOf<T>(answer: unknown): T[] {
  if (answer === "after" || answer === "before") throw new UnknownCursorError(answer);
  return answer as T[];
}

function turnOf(row: readonly Field[]): ChainTurn {
  const [id, kind, createdAt, conversationId, model, status, input, body, beside] = row;
  const known = (kind ?? "response") as ResponseKind;
  return {
    id: id ?? "",
    kind: known,
    createdAt: Date.parse(createdAt ?? "1970-01-01"),
    conversationId: conversationId ?? null,
    model: model ?? null,
    status: status ?? "completed",
    input: arrayTexts(input ?? "[]"),
    output: outputOf(known, bodyOf(body ?? null), beside ?? null),
  };
}

function itemRow([id, type, role, status, content]: readonly Field[]): ItemColumns {
  return {
    id: id ?? "",
    type: type ?? "message",
    role: role ?? null,
    status: status ?? null,
    content: content ?? "null",
  };
}

function conversationOf(
  tenant: string,
  id: string,
  answer: unknown,
): Awaited<ReturnType<HistoryStore["getConversation"]>> {
  if (answer === null) return null;
  const [createdAt, metadata] = answer as Field[];
  return { tenant, id, createdAt: Date.parse(createdAt ?? "1970-01-01"), metadata: metadata ?? "{}" };
}
