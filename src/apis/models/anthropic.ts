/** Models as Anthropic's API shows them. */
import { InvalidRequestError } from "../../errors.ts";
import type { ShownModel } from "../../fleet/snapshot.ts";
import { idPage, type PageQuery } from "../anthropic/page.ts";

/** What is not known of a model, or has no meaning here, is null. */
export function modelInfo({ created, contextLength }: ShownModel, name: string): Record<string, unknown> {
  const length = contextLength > 0 ? contextLength : null;
  return {
    type: "model",
    id: name,
    display_name: name,
    created_at: new Date(created * 1000).toISOString(),
    max_input_tokens: length,
    max_tokens: length,
    lifecycle: "active",
    capabilities: null,
    line: null,
    deprecated_at: null,
    retires_at: null,
  };
}

/** A page of all models, aliases included. Throws InvalidRequestError for a cursor that is no model. */
export function modelInfoList(entries: readonly ShownModel[], { limit, after, before }: PageQuery): object {
  const all = entries.flatMap((entry) => [entry.id, ...entry.aliases].map((name) => modelInfo(entry, name)));
  const at = (id: string, param: string): number => {
    const found = all.findIndex((model) => model["id"] === id);
    if (found < 0) throw new InvalidRequestError(`${param}: there is no model '${id.slice(0, 200)}'`, { param });
    return found;
  };
  const from = after === undefined ? 0 : at(after, "after_id") + 1;
  const to = before === undefined ? all.length : at(before, "before_id");
  const start = before === undefined ? from : Math.max(from, to - limit);
  const data = all.slice(start, Math.min(to, start + limit));
  return idPage(data, before === undefined ? start + data.length < to : start > from);
}
