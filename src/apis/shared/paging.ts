/** Lists with cursors, as OpenAI's API has them. */
import { InvalidRequestError } from "../../errors.ts";
import type { Page, PageRequest, StoredItem } from "../../history/store.ts";

const DEFAULT_LIMIT = 20;
const LARGEST_LIMIT = 100;

/** The page that a query asks for: `limit` (1 to 100, 20 if absent), `order` (desc if absent), `after`, `before`. Throws InvalidRequestError. */
export function pageRequest(query: URLSearchParams): PageRequest {
  const order = query.get("order") ?? "desc";
  if (order !== "asc" && order !== "desc")
    throw new InvalidRequestError("order must be asc or desc", { param: "order" });
  const cursors = { after: query.get("after") ?? undefined, before: query.get("before") ?? undefined };
  return {
    order,
    limit: limitOf(query.get("limit")),
    ...(cursors.after !== undefined && { after: cursors.after }),
    ...(cursors.before !== undefined && { before: cursors.before }),
  };
}

function limitOf(given: string | null): number {
  if (given === null) return DEFAULT_LIMIT;
  const limit = /^\d{1,4}$/.test(given) ? Number(given) : 0;
  if (limit < 1 || limit > LARGEST_LIMIT)
    throw new InvalidRequestError(`limit must be an integer from 1 to ${LARGEST_LIMIT}`, { param: "limit" });
  return limit;
}

/** Query of a URL. */
export function queryOf(url: string): URLSearchParams {
  const at = url.indexOf("?");
  return new URLSearchParams(at < 0 ? "" : url.slice(at));
}

/** A list as an answer: its items stand there as they were stored. */
export function listResponse({ data, hasMore }: Page<StoredItem>, headers: Record<string, string> = {}): Response {
  const id = (item: StoredItem | undefined): string => JSON.stringify(item === undefined ? null : item.id);
  const items = data.map(({ json }) => json).join(",");
  return jsonResponse(
    `{"object":"list","data":[${items}],"first_id":${id(data[0])},"last_id":${id(data.at(-1))},"has_more":${hasMore}}`,
    headers,
  );
}

/** An answer that is JSON text already. */
export const jsonResponse = (json: string, headers: Record<string, string> = {}): Response =>
  new Response(json, { headers: { "content-type": "application/json;charset=utf-8", ...headers } });
