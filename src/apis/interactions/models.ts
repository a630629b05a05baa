/** Models as Google's API lists them (google.ai.generativelanguage.v1beta.Model). */
import { InvalidRequestError } from "../../errors.ts";
import type { ShownModel } from "../../fleet/snapshot.ts";
import { queryOf } from "../shared/paging.ts";

export function googleModel(entry: ShownModel, name: string = entry.id): Record<string, unknown> {
  const { defaultSampling: sampling = {}, contextLength } = entry;
  return {
    name: `models/${name}`,
    baseModelId: entry.id,
    version: "1",
    displayName: name,
    description: "",
    // prompt and answer share the context
    ...(contextLength > 0 && { inputTokenLimit: contextLength, outputTokenLimit: contextLength }),
    supportedGenerationMethods:
      entry.tokenizer !== undefined && entry.pooling === undefined ? ["createInteraction"] : [],
    temperature: sampling["temperature"] ?? 1,
    topP: sampling["top_p"] ?? 1,
    ...(sampling["top_k"] !== undefined && { topK: sampling["top_k"] }),
  };
}

const MOST = 1000;
const USUAL = 50;

/**
 * A page of all models, aliases included: the one that `pageSize` and `pageToken` (where the page before ended) of a URL name. Throws
 * InvalidRequestError.
 */
export function googleModelPage(entries: readonly ShownModel[], url: string): Record<string, unknown> {
  const query = queryOf(url);
  const size = wholeNumber(query.get("pageSize"), "pageSize") || USUAL;
  const from = wholeNumber(query.get("pageToken"), "pageToken");
  const all = entries.flatMap((entry) => [entry.id, ...entry.aliases].map((name) => ({ entry, name })));
  const to = from + Math.min(size, MOST);
  return {
    models: all.slice(from, to).map(({ entry, name }) => googleModel(entry, name)),
    ...(to < all.length && { nextPageToken: String(to) }),
  };
}

function wholeNumber(text: string | null, param: string): number {
  if (text === null || text === "") return 0;
  if (!/^\d{1,9}$/.test(text)) throw new InvalidRequestError(`${param} must be a whole number`, { param });
  return Number(text);
}
