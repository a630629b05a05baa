import { UnknownCursorError } from "./errors.ts";
import type { Page, PageRequest } from "./store.ts";

/** A page of a list that lies in memory, oldest first. */
export function pageOf<T>(all: readonly T[], idOf: (entry: T) => string, page: PageRequest): Page<T> {
  const list = page.order === "asc" ? all : all.toReversed();
  const find = (param: "after" | "before"): number | undefined => {
    const wanted = page[param];
    if (wanted === undefined) return undefined;
    const index = wanted === "" ? -1 : list.findIndex((entry) => idOf(entry) === wanted);
    if (index < 0) throw new UnknownCursorError(param);
    return index;
  };
  const after = find("after");
  const before = find("before");
  const part = list.slice(after === undefined ? 0 : after + 1, before);
  return pageOfRows(isBackward(page) ? part.toReversed() : part, page);
}

/** Whether a page is read from its end: it is to end just before a cursor. */
export function isBackward({ after, before }: PageRequest): boolean {
  return before !== undefined && after === undefined;
}

/** A page out of rows in the order in which they were read: one more than `limit` where there is more. */
export function pageOfRows<T>(rows: readonly T[], page: PageRequest): Page<T> {
  const data = rows.slice(0, page.limit);
  return { data: isBackward(page) ? data.toReversed() : data, hasMore: rows.length > page.limit };
}
