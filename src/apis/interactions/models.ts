/** Models as Google's API lists them (google.ai.generativelanguage.v1beta.Model). */
import { InvalidRequestError } from "../../errors.ts";
import type { ModelEntry } from "../../fleet/snapshot.ts";

export function googleModel(entry: ModelEntry, name: string = entry.id): Record<string, unknown> {
  const { defaultSampling: sampling, contextLength } = entry;
  return {
    name: `models/${name}`,
    baseModelId: entry.id,
    version: "1",
    displayName: name,
    description: "",
    // prompt and answer share the context
    ...(contextLength > 0 && { inputTokenLimit: contextLength, outputTokenLimit: contextLength }),
    supportedGenerationMethods: entry.pooling === undefined ? ["createInteraction"] : [],
    temperature: sampling["temperature"] ?? 1,
    topP: sampling["top_p"] ?? 1,
    ...(sampling["top_k"] !== undefined && { topK: sampling["top_k"] }),
  };
}

const MOST = 1000;
const USUAL = 50;

/** A page of all models, aliases included. `token`: where the page before ended. Throws InvalidRequestError. */
export function googleModelList(
  entries: readonly ModelEntry[],
  { pageSize, pageToken }: { readonly pageSize?: string | undefined; readonly pageToken?: string | undefined },
): Record<string, unknown> {
  const size = wholeNumber(pageSize, "pageSize") || USUAL;
  const from = wholeNumber(pageToken, "pageToken");
  const all = entries.flatMap((entry) => [entry.id, ...entry.aliases].map((name) => ({ entry, name })));
  const to = from + Math.min(size, MOST);
  return {
    models: all.slice(from, to).map(({ entry, name }) => googleModel(entry, name)),
    ...(to < all.length && { nextPageToken: String(to) }),
  };
}

function wholeNumber(text: string | undefined, param: string): number {
  if (text === undefined || text === "") return 0;
  if (!/^\d{1,9}$/.test(text)) throw new InvalidRequestError(`${param} must be a whole number`, { param });
  return Number(text);
}
