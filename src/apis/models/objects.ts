import type { ShownModel } from "../../fleet/snapshot.ts";

/** A model as OpenAI's `GET /v1/models` shows it, with `max_model_len` as vLLM adds it. */
export function modelObject(entry: ShownModel, name: string = entry.id): Record<string, unknown> {
  return {
    id: name,
    object: "model",
    created: entry.created,
    owned_by: "collie",
    root: entry.id,
    parent: null,
    ...(entry.contextLength > 0 && { max_model_len: entry.contextLength }),
  };
}

/** All models, aliases included: each name that a client may send is in the list. */
export function modelList(entries: readonly ShownModel[]): Record<string, unknown> {
  return {
    object: "list",
    data: entries.flatMap((entry) => [entry.id, ...entry.aliases].map((name) => modelObject(entry, name))),
  };
}
