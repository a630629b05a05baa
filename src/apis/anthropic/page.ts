/** Lists as Anthropic's API pages them. */
import { InvalidRequestError } from "../../errors.ts";

export interface PageQuery {
  readonly limit: number;
  /** The list goes on behind this id. */
  readonly after: string | undefined;
  /** The list ends before this id. */
  readonly before: string | undefined;
}

const LIMIT = 20;
const MOST = 1000;

/** `limit`, `after_id` and `before_id` of a URL. Throws InvalidRequestError. */
export function pageQuery(url: string): PageQuery {
  const at = url.indexOf("?");
  const query = new URLSearchParams(at < 0 ? "" : url.slice(at));
  const sent = query.get("limit");
  const limit = sent === null || sent === "" ? LIMIT : Number(sent);
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST)
    throw new InvalidRequestError(`limit must be a whole number from 1 to ${MOST}`, { param: "limit" });
  const [after, before] = [query.get("after_id") || undefined, query.get("before_id") || undefined];
  if (after !== undefined && before !== undefined)
    throw new InvalidRequestError("after_id and before_id exclude each other", { param: "before_id" });
  return { limit, after, before };
}

/** A page of objects that have an `id`. `hasMore`: the list goes on in the direction in which it was asked for. */
export function idPage(data: readonly Readonly<Record<string, unknown>>[], hasMore: boolean): object {
  return {
    data,
    has_more: hasMore,
    first_id: data[0]?.["id"] ?? null,
    last_id: data.at(-1)?.["id"] ?? null,
  };
}
