/** Under which name the index has what a worker's cache holds of a model: a server may have several names for one. */
import type { HttpModel } from "../engines/http/engine.ts";

export interface CacheName {
  /** A name of the model, which all of its names on this server have in common. */
  readonly model: string;
  /** Adapter. */
  readonly lora?: string | undefined;
}

/** Of the models that a server lists, those that are cached under another name than their id. */
export function cacheNames(served: readonly HttpModel[]): ReadonlyMap<string, CacheName> {
  const isAdapter = ({ id, parent }: HttpModel): boolean => parent !== undefined && parent !== id;
  const firstOf = new Map<string, string>();
  for (const model of served) {
    const { id, root } = model;
    if (root === undefined || isAdapter(model)) continue;
    const first = firstOf.get(root);
    if (first === undefined || id < first) firstOf.set(root, id); // not by order: another server may list them in another
  }
  const baseOf = (id: string): string => {
    const { root } = served.find((model) => model.id === id) ?? {};
    return (root === undefined ? undefined : firstOf.get(root)) ?? id;
  };
  const names = new Map<string, CacheName>();
  for (const model of served) {
    const { id, parent } = model;
    if (isAdapter(model)) names.set(id, { model: baseOf(parent!), lora: id });
    else if (baseOf(id) !== id) names.set(id, { model: baseOf(id) });
  }
  return names;
}
